"""What a reward model's folder must be, checked from its files alone.

Covered: that every file is there, is of a kind that holds data and no code, that the weights'
header, its fit to the configuration and the calibration are sound, and that its input can be read
here as it was trained (`input_format`). Where a checkpoint is taken in, also that every weight is
a number. Not covered: whether transformers knows the architecture; loading finds that out
(reward/loading.py).
"""

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stash_mcp.checkpoints.input_format import format_of
from stash_mcp.checkpoints.numbers import check_numbers
from stash_mcp.checkpoints.places import (
    CONFIG_FILE,
    RETRAIN,
    STATS_FILE,
    TAKE_WHOLE,
    TOKENIZER_CONFIG_FILE,
    WEIGHTS_FILE,
    Place,
    read_object,
)
from stash_mcp.checkpoints.weights import check_weights
from stash_mcp.errors import CheckpointError
from stash_mcp.models import InputFormat
from stash_mcp.storage.files import os_errors, write_json

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
_DEFAULT_LABELS = 2
"""What transformers takes where a configuration does not say."""


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
    return _verified(Place(folder, str(folder)))


def verify_whole_checkpoint(folder: Path, shown: str | None = None) -> RewardStats:
    """The same, and every weight is read: a finite number, all of them. For what comes from
    elsewhere; gigabytes take seconds. `shown`: what messages call the folder, default its path.
    """
    place = Place(folder, shown or str(folder))
    stats = _verified(place)
    with os_errors("read", folder):
        check_numbers(place)
    return stats


def read_input_format(folder: Path) -> InputFormat:
    """How the checkpoint in `folder` reads a conversation; CheckpointError as of `format_of`."""
    return format_of(Place(folder, str(folder)))


def _verified(place: Place) -> RewardStats:
    if not place.folder.is_dir():
        raise CheckpointError(f"There is no reward model folder at {place.shown}.", TAKE_WHOLE)
    with os_errors("read", place.folder):
        _check_files(place)
        _check_present(place)
        config = _checked_config(place)
        _refuse_code(place, TOKENIZER_CONFIG_FILE, read_object(place, TOKENIZER_CONFIG_FILE))
        format_of(place)
        check_weights(place, config)
        return _read_stats(place)


def write_stats(folder: Path, stats: RewardStats) -> None:
    write_json(folder / STATS_FILE, {"mean": stats.mean, "std": stats.std})


def _check_files(place: Place) -> None:
    for path in sorted(place.folder.rglob("*")):
        name = path.relative_to(place.folder).as_posix()
        if path.is_symlink():
            raise CheckpointError(
                f"The reward model {place.shown} holds a link, {name}.",
                "Copy the folder with its links followed (cp -rL) and import the copy.",
            )
        if not path.is_dir():
            _check_kind(place, path, name)


def _check_kind(place: Place, path: Path, name: str) -> None:
    if path.suffix.lower() in _PICKLE_SUFFIXES:
        raise CheckpointError(
            f"The reward model {place.shown} holds {name}, which can run code when it is loaded.",
            f"Delete it if {WEIGHTS_FILE} is there as well, or save the model with safetensors.",
        )
    if path.suffix.lower() == ".py":
        raise CheckpointError(
            f"The reward model {place.shown} brings its own code, {name}; only models that "
            "transformers knows are loaded.",
            "Train on a base model that needs no code of its own.",
        )
    known = path.suffix.lower() in _DATA_SUFFIXES or path.name in _DATA_NAMES
    if not known or path.name in _REFUSED_NAMES or not path.is_file():
        raise CheckpointError(
            f"The reward model {place.shown} holds {name}, which is no part of a reward model.",
            "Take it out of the folder and import it again.",
        )


def _check_present(place: Place) -> None:
    for name in (CONFIG_FILE, WEIGHTS_FILE, TOKENIZER_CONFIG_FILE):
        if not place.file(name).is_file():
            raise CheckpointError(f"The reward model {place.shown} has no {name}.", TAKE_WHOLE)
    if not any(_has_content(place.file(name)) for name in _VOCABULARY_FILES):
        raise CheckpointError(
            f"The reward model {place.shown} has no tokenizer vocabulary, for example "
            f"{_VOCABULARY_FILES[0]}.",
            TAKE_WHOLE,
        )
    if not place.file(STATS_FILE).is_file():
        raise CheckpointError(
            f"The reward model {place.shown} has no {STATS_FILE}: it was trained before "
            "calibration.",
            "Retrain it.",
        )


def _has_content(path: Path) -> bool:
    return path.is_file() and path.stat().st_size > 0


def _checked_config(place: Place) -> Mapping[str, Any]:
    config = read_object(place, CONFIG_FILE)
    _refuse_code(place, CONFIG_FILE, config)
    labels = _label_count(config)
    if labels != 1:
        raise CheckpointError(
            f"The model in {place.shown} has {labels} labels in its {CONFIG_FILE}; a reward model "
            "has one.",
            RETRAIN,
        )
    named = config.get("architectures")
    architectures = named if isinstance(named, list) else [named] if named else []
    if architectures and not any("SequenceClassification" in str(a) for a in architectures):
        raise CheckpointError(
            f"The model in {place.shown} is {str(architectures[0])[:100]}, which gives no reward.",
            RETRAIN,
        )
    return config


def _label_count(config: Mapping[str, Any]) -> object:
    names = config.get("id2label")
    return len(names) if isinstance(names, dict) else config.get("num_labels", _DEFAULT_LABELS)


def _refuse_code(place: Place, name: str, config: Mapping[str, Any]) -> None:
    # An attention implementation with a slash is code that transformers fetches from the hub.
    fetched = [key for key in _ATTENTION_KEYS if "/" in str(config.get(key))]
    named = [key for key in _CODE_KEYS if config.get(key)] + fetched
    if named:
        raise CheckpointError(
            f"{place.name_of(name)} asks for code from outside ({named[0]}); only models that "
            "transformers knows are loaded.",
            "Train on a base model that needs no code of its own.",
        )


def _read_stats(place: Place) -> RewardStats:
    stats = read_object(place, STATS_FILE)
    mean, std = (_number(place, stats, key) for key in ("mean", "std"))
    if std <= 0:
        raise CheckpointError(
            f"{place.name_of(STATS_FILE)} has the std {std:g}; a reward model that tells texts "
            "apart has one above 0.",
            RETRAIN,
        )
    return RewardStats(mean=mean, std=std)


def _number(place: Place, stats: Mapping[str, Any], key: str) -> float:
    value = stats.get(key)
    if isinstance(value, int | float) and not isinstance(value, bool) and _is_finite(value):
        return float(value)
    raise CheckpointError(
        f"{place.name_of(STATS_FILE)} has no finite number `{key}`: {str(value)[:100]!r}.", RETRAIN
    )


def _is_finite(value: int | float) -> bool:
    # JSON has integers of any size; beyond the largest float they are no use to us.
    return abs(value) <= sys.float_info.max
