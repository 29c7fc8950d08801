"""A base model with a new head, or a checkpoint, from a folder into memory.

Nothing here runs code from the folder: safetensors alone, and only architectures that
transformers has itself. The one place where transformers' errors are translated.
"""

from pathlib import Path
from typing import Any

import torch
from huggingface_hub.errors import StrictDataclassError
from safetensors import SafetensorError
from transformers import AutoConfig, AutoModelForSequenceClassification, AutoTokenizer

from stash_mcp.checkpoints import read_input_format
from stash_mcp.errors import CheckpointError, StashSkillsError, TrainingError
from stash_mcp.rendering import render_sections
from stash_mcp.reward.network import RewardNetwork
from stash_mcp.reward.quiet import silence_libraries
from stash_mcp.reward.sections import encode_sections

MAX_LENGTH = 1024
"""The contract's tokens for each text; longer ones lose their start."""
MAX_SECTIONED_LENGTH = 4096
"""The same of input version 3, whose sections are shortened one by one."""

# What a folder that is not what it seems makes transformers raise.
_LOAD_ERRORS = (
    OSError,
    ValueError,
    TypeError,
    KeyError,
    AttributeError,
    RuntimeError,
    ImportError,
    ArithmeticError,
    SafetensorError,
    StrictDataclassError,
)
_ATTENTION_DROPOUT = ("attention_probs_dropout_prob", "attention_dropout")
_OWN_KEYS = ("stash_input_version", "stash_rubric")
_ANOTHER_BASE = "Choose another base model."


def load_base(
    folder: Path, name: str, device: torch.device, max_length: int = MAX_LENGTH
) -> RewardNetwork:
    """The base model in `folder` with a new head of one label, which takes torch's seed.

    Attention dropout is set to 0 and stays so in what is saved: any other value forces a slow way
    of computing attention (2.6 times a step on MiniLM). Other dropout stays. `max_length` above
    what the base has positions for is lowered. Raises TrainingError; `name` is for its messages.
    """
    silence_libraries()
    try:
        config = _config(folder, num_labels=1)
        for key in _ATTENTION_DROPOUT:
            if getattr(config, key, 0):
                setattr(config, key, 0.0)
        model, missing = _model(folder, config)
        tokenizer = _tokenizer(folder)
    except _LOAD_ERRORS as error:
        raise _unusable_base(name, error) from error
    _refuse_partial(name, model, missing)
    _prepare_tokenizer(name, tokenizer)
    model.config.pad_token_id = tokenizer.pad_token_id
    length = min(max_length, MAX_LENGTH, _positions(model))
    tokenizer.model_max_length = length
    return RewardNetwork(model.to(device), tokenizer, device, length)


def load_checkpoint(folder: Path, device: torch.device) -> RewardNetwork:
    """A verified checkpoint, ready to score. Raises CheckpointError if transformers refuses it."""
    silence_libraries()
    try:
        model, missing = _model(folder, _config(folder))
        tokenizer = _tokenizer(folder)
    except _LOAD_ERRORS as error:
        raise _unusable_checkpoint(folder, _first_line(error)) from error
    if missing:
        raise _unusable_checkpoint(folder, f"its weights lack {missing[0]}")
    if model.config.pad_token_id is None:
        raise _unusable_checkpoint(folder, "its config.json has no pad_token_id")
    if len(tokenizer) <= len(tokenizer.all_special_ids):
        raise _unusable_checkpoint(folder, "its tokenizer has no vocabulary")
    # A checkpoint may leave it out, and transformers' own side is the other one.
    tokenizer.truncation_side = "left"
    in_sections = read_input_format(folder).version == 3
    longest = MAX_SECTIONED_LENGTH if in_sections else MAX_LENGTH
    length = min(tokenizer.model_max_length, longest, _positions(model, longest))
    if in_sections:
        _check_sections(folder, tokenizer, length)
    model.eval()
    return RewardNetwork(model.to(device), tokenizer, device, length, in_sections)


def _check_sections(folder: Path, tokenizer: Any, length: int) -> None:
    """Raise CheckpointError unless the sections get the shares that they were trained with."""
    if length < tokenizer.model_max_length:
        raise _unusable_checkpoint(
            folder,
            f"its sections share {tokenizer.model_max_length} tokens, of which the model "
            f"has {length}",
        )
    encode_sections(tokenizer, render_sections(None, (), "", ()), length)


def _config(folder: Path, **changes: Any) -> Any:
    config = AutoConfig.from_pretrained(str(folder), trust_remote_code=False, **changes)
    # Rewards need no cache of keys and values, which would cost memory.
    if getattr(config, "use_cache", False):
        config.use_cache = False
    return config


def _model(folder: Path, config: Any) -> tuple[Any, list[str]]:
    """The model, and the names of weights that the folder does not have."""
    model, info = AutoModelForSequenceClassification.from_pretrained(
        str(folder),
        config=config,
        # Without it a model saved in bfloat16 stays so, which is half as fast on a processor.
        dtype=torch.float32,
        use_safetensors=True,
        trust_remote_code=False,
        output_loading_info=True,
    )
    return model, sorted(info["missing_keys"])


def _tokenizer(folder: Path) -> Any:
    return AutoTokenizer.from_pretrained(str(folder), trust_remote_code=False)


def _refuse_partial(name: str, model: Any, missing: list[str]) -> None:
    # A head, and the pooler before it, are made anew; a body made anew would be noise.
    body = [
        key
        for key in missing
        if key.startswith(f"{model.base_model_prefix}.") and "pooler" not in key
    ]
    if body:
        raise TrainingError(
            f"The base model {name} lacks {len(body)} of its weights, for example {body[0]}.",
            "Copy or download it again.",
        )


def _prepare_tokenizer(name: str, tokenizer: Any) -> None:
    # transformers makes an empty tokenizer, silently, where the vocabulary is missing.
    if len(tokenizer) <= len(tokenizer.all_special_ids):
        raise TrainingError(
            f"The base model {name} has no tokenizer vocabulary.", "Copy or download it again."
        )
    tokenizer.truncation_side = "left"
    # Saved in the tokenizer's configuration is only what it was made with.
    tokenizer.init_kwargs["truncation_side"] = "left"
    for key in _OWN_KEYS:
        tokenizer.init_kwargs.pop(key, None)
    if tokenizer.pad_token is None:
        tokenizer.pad_token = tokenizer.eos_token
    if tokenizer.pad_token is None:
        raise TrainingError(
            f"The tokenizer of the base model {name} has no token to pad with.", _ANOTHER_BASE
        )


def _positions(model: Any, unlimited: int = MAX_LENGTH) -> int:
    """How many tokens the model has positions for; `unlimited` where it does not say."""
    limit = getattr(model.config, "max_position_embeddings", None)
    if not isinstance(limit, int) or limit <= 0:
        return unlimited
    for name, module in model.named_modules():
        # RoBERTa and its kin count positions from the padding's, and lose those before it.
        padding = getattr(module, "padding_idx", None)
        if name.endswith("position_embeddings") and padding is not None:
            return limit - int(padding) - 1
    return limit


def _unusable_base(name: str, error: Exception) -> StashSkillsError:
    # transformers raises a plain ValueError here; its advice is the only sign of the reason.
    if "trust_remote_code" in str(error):
        return TrainingError(
            f"The base model {name} needs code of its own, which is never run.", _ANOTHER_BASE
        )
    return TrainingError(
        f"The base model {name} cannot be loaded: {_first_line(error)}.", _ANOTHER_BASE
    )


def _unusable_checkpoint(folder: Path, reason: str) -> CheckpointError:
    return CheckpointError(
        f"The reward model {folder} cannot be loaded: {reason}.",
        "Copy it again from where it was trained, or train it again.",
    )


def _first_line(error: Exception) -> str:
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return lines[0].rstrip(".")
