"""What a reward model's folder must be, checked from its files alone.

Covered: that every file is there, is of a kind that holds data and no code, and that the weights'
header and the calibration are sound. Not covered: whether transformers knows the architecture;
loading the model finds that out (reward/loading.py).
"""

import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stash_mcp.checkpoints.weights import check_weights
from stash_mcp.errors import CheckpointError
from stash_mcp.models import InputFormat
from stash_mcp.storage.files import os_errors, write_json

CONFIG_FILE = "config.json"
WEIGHTS_FILE = "model.safetensors"
TOKENIZER_CONFIG_FILE = "tokenizer_config.json"
STATS_FILE = "reward_stats.json"

INPUT_VERSIONS = (1, 3)
"""Version 1 is what is trained here; 3 comes from Stash. Every other one is refused by name."""
KNOWN_INPUT_VERSIONS = (1, 2, 3)

# One of these holds the vocabulary: transformers makes an empty tokenizer where none is there,
# and says nothing.
_VOCABULARY_FILES = (
    "tokenizer.json",
    "vocab.txt",
    "vocab.json",
    "tokenizer.model",
    "spiece.model",
    "sentencepiece.bpe.model",
    "spm.model",
)
_DATA_SUFFIXES = {".json", ".safetensors", ".txt", ".model", ".jinja", ".md"}
_DATA_NAMES = {"LICENSE", "NOTICE", ".gitattributes"}
_PICKLE_SUFFIXES = {".bin", ".pt", ".pth", ".pkl", ".pickle", ".ckpt", ".joblib", ".npy", ".npz"}
# An adapter's configuration makes transformers fetch another model by the name written in it.
_REFUSED_NAMES = {"adapter_config.json"}
_CODE_KEYS = ("auto_map", "custom_pipelines")
_ATTENTION_KEYS = ("attn_implementation", "_attn_implementation")
_MAX_JSON_BYTES = 16 * 1024 * 1024
_DEFAULT_LABELS = 2
"""What transformers takes where a configuration does not say."""

_IMPORT_WHOLE = "Import the whole folder that a training saved."
_RETRAIN = "Train the reward model again."


@dataclass(frozen=True)
class RewardStats:
    """Mean and population standard deviation (above 0) of the rewards of the training texts."""

    mean: float
    std: float


def verify_checkpoint(folder: Path) -> RewardStats:
    """Check the folder of a reward model; returns its calibration.

    Raises CheckpointError for anything missing, damaged, of an unknown version, or able to run
    code on load.
    """
    if not folder.is_dir():
        raise CheckpointError(f"There is no reward model folder at {folder}.", _IMPORT_WHOLE)
    with os_errors("read", folder):
        _check_files(folder)
        _check_present(folder)
        _check_config(folder)
        _check_tokenizer(folder)
        check_weights(folder / WEIGHTS_FILE)
        return _read_stats(folder)


def write_stats(folder: Path, stats: RewardStats) -> None:
    write_json(folder / STATS_FILE, {"mean": stats.mean, "std": stats.std})


def _check_files(folder: Path) -> None:
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if path.is_symlink():
            raise CheckpointError(
                f"The reward model {folder} holds a link, {name}.",
                "Copy the folder with its links followed (cp -rL) and import the copy.",
            )
        if not path.is_dir():
            _check_kind(folder, path, name)


def _check_kind(folder: Path, path: Path, name: str) -> None:
    if path.suffix.lower() in _PICKLE_SUFFIXES:
        raise CheckpointError(
            f"The reward model {folder} holds {name}, which can run code when it is loaded.",
            f"Delete it if {WEIGHTS_FILE} is there as well, or save the model with safetensors.",
        )
    if path.suffix.lower() == ".py":
        raise CheckpointError(
            f"The reward model {folder} brings its own code, {name}; only models that "
            "transformers knows are loaded.",
            "Train on a base model that needs no code of its own.",
        )
    known = path.suffix.lower() in _DATA_SUFFIXES or path.name in _DATA_NAMES
    if not known or path.name in _REFUSED_NAMES or not path.is_file():
        raise CheckpointError(
            f"The reward model {folder} holds {name}, which is no part of a reward model.",
            "Take it out of the folder and import it again.",
        )


def _check_present(folder: Path) -> None:
    for name in (CONFIG_FILE, WEIGHTS_FILE, TOKENIZER_CONFIG_FILE):
        if not (folder / name).is_file():
            raise CheckpointError(f"The reward model {folder} has no {name}.", _IMPORT_WHOLE)
    if not any((folder / name).is_file() for name in _VOCABULARY_FILES):
        raise CheckpointError(
            f"The reward model {folder} has no tokenizer vocabulary, for example "
            f"{_VOCABULARY_FILES[0]}.",
            _IMPORT_WHOLE,
        )
    if not (folder / STATS_FILE).is_file():
        raise CheckpointError(
            f"The reward model {folder} has no {STATS_FILE}: it was trained before calibration.",
            "Retrain it.",
        )


def _check_config(folder: Path) -> None:
    config = _read_object(folder / CONFIG_FILE)
    _refuse_code(folder / CONFIG_FILE, config)
    labels = _label_count(config)
    if labels != 1:
        raise CheckpointError(
            f"The model in {folder} has {labels} labels in its {CONFIG_FILE}; a reward model "
            "has one.",
            _RETRAIN,
        )
    architectures = config.get("architectures") or []
    if architectures and not any("SequenceClassification" in str(a) for a in architectures):
        raise CheckpointError(
            f"The model in {folder} is {architectures[0]}, which gives no reward.", _RETRAIN
        )


def _label_count(config: Mapping[str, Any]) -> object:
    names = config.get("id2label")
    return len(names) if isinstance(names, dict) else config.get("num_labels", _DEFAULT_LABELS)


def _check_tokenizer(folder: Path) -> None:
    _refuse_code(folder / TOKENIZER_CONFIG_FILE, _read_object(folder / TOKENIZER_CONFIG_FILE))
    read_input_format(folder)


def read_input_format(folder: Path) -> InputFormat:
    """How the checkpoint in `folder` reads a conversation.

    CheckpointError for a version that is not known here, and for a rubric that is no list of texts.
    """
    config = _read_object(folder / TOKENIZER_CONFIG_FILE)
    version = config.get("stash_input_version", 1)
    if type(version) is not int or version not in INPUT_VERSIONS:
        known = "is known but not supported" if version in KNOWN_INPUT_VERSIONS else "is unknown"
        raise CheckpointError(
            f"The reward model {folder} reads its input in stash_input_version {version!r}, which "
            f"{known} by this release; it reads the versions 1 and 3.",
            "Use a newer release, or train the reward model here.",
        )
    if version == 1:
        return InputFormat()
    rubric = config.get("stash_rubric") or []
    if not isinstance(rubric, list) or not all(isinstance(line, str) for line in rubric):
        raise CheckpointError(
            f"The reward model {folder} has a stash_rubric that is no list of texts.", _RETRAIN
        )
    return InputFormat(version=3, rubric=tuple(rubric))


def _refuse_code(path: Path, config: Mapping[str, Any]) -> None:
    # An attention implementation with a slash is code that transformers fetches from the hub.
    fetched = [key for key in _ATTENTION_KEYS if "/" in str(config.get(key))]
    named = [key for key in _CODE_KEYS if config.get(key)] + fetched
    if named:
        raise CheckpointError(
            f"{path} asks for code from outside ({named[0]}); only models that transformers "
            "knows are loaded.",
            "Train on a base model that needs no code of its own.",
        )


def _read_object(path: Path) -> dict[str, Any]:
    if path.stat().st_size > _MAX_JSON_BYTES:
        raise CheckpointError(f"{path} is too large for what it is.", _IMPORT_WHOLE)
    try:
        value = json.loads(path.read_bytes())
    except (ValueError, RecursionError) as error:
        raise CheckpointError(f"{path} is not valid JSON: {error}.", _IMPORT_WHOLE) from error
    if not isinstance(value, dict):
        raise CheckpointError(f"{path} is not a JSON object.", _IMPORT_WHOLE)
    return value


def _read_stats(folder: Path) -> RewardStats:
    path = folder / STATS_FILE
    stats = _read_object(path)
    mean, std = (_number(path, stats, key) for key in ("mean", "std"))
    if std <= 0:
        raise CheckpointError(
            f"{path} has the std {std:g}; a reward model that tells texts apart has one above 0.",
            _RETRAIN,
        )
    return RewardStats(mean=mean, std=std)


def _number(path: Path, stats: Mapping[str, Any], key: str) -> float:
    value = stats.get(key)
    if isinstance(value, int | float) and not isinstance(value, bool) and _is_finite(value):
        return float(value)
    raise CheckpointError(f"{path} has no finite number `{key}`: {value!r}.", _RETRAIN)


def _is_finite(value: int | float) -> bool:
    # JSON has integers of any size; beyond the largest float they are no use to us.
    return abs(value) <= sys.float_info.max
