"""A reward model of input version 3, made for the test: every byte is a token."""

import json
from pathlib import Path

from tokenizers import Tokenizer, decoders
from tokenizers.models import BPE
from tokenizers.pre_tokenizers import ByteLevel
from transformers import (
    BertConfig,
    BertForSequenceClassification,
    PreTrainedTokenizerFast,
    set_seed,
)

from stash_mcp.checkpoints import RewardStats, write_stats
from stash_mcp.reward.quiet import silence_libraries

RUBRIC = ("Keeps to the task.", "Says what it did.")


def byte_tokenizer() -> PreTrainedTokenizerFast:
    alphabet = sorted(ByteLevel.alphabet())
    vocabulary = {token: number for number, token in enumerate(["[PAD]", *alphabet])}
    tokenizer = Tokenizer(BPE(vocabulary, []))
    tokenizer.pre_tokenizer = ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.decoder = decoders.ByteLevel()
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, pad_token="[PAD]")


def save_sectioned(folder: Path, length: int, rubric: tuple[str, ...] = RUBRIC) -> Path:
    """An untrained model of one small layer; `length` is its context. Returns `folder`."""
    silence_libraries()
    set_seed(1)
    tokenizer = byte_tokenizer()
    config = BertConfig(
        vocab_size=len(tokenizer),
        hidden_size=8,
        num_hidden_layers=1,
        num_attention_heads=1,
        intermediate_size=16,
        max_position_embeddings=length,
        num_labels=1,
        pad_token_id=0,
    )
    BertForSequenceClassification(config).save_pretrained(str(folder))
    tokenizer.save_pretrained(str(folder))
    path = folder / "tokenizer_config.json"
    own = {
        "stash_input_version": 3,
        "stash_rubric": list(rubric),
        "model_max_length": length,
        "truncation_side": "left",
    }
    path.write_text(json.dumps({**json.loads(path.read_bytes()), **own}), encoding="utf-8")
    write_stats(folder, RewardStats(mean=0.0, std=1.0))
    return folder
