"""How a checkpoint reads a conversation, from its tokenizer's configuration.

What cannot be read here as it was in training is refused by name: a score from another input than
the model was trained on is a wrong one, and looks like any other.
"""

from collections.abc import Mapping
from typing import Any

from stash_mcp.checkpoints.places import CONFIG_FILE, TOKENIZER_CONFIG_FILE, Place, read_object
from stash_mcp.errors import CheckpointError
from stash_mcp.models import InputFormat

INPUT_VERSIONS = (1, 3)
"""Version 1 is what is trained here; 3 comes from Stash. Every other one is refused by name."""
KNOWN_INPUT_VERSIONS = (1, 2, 3)
MAX_TOKENS = {1: 1024, 3: 4096}
"""Of one text, by version."""

# From here on transformers takes a length for "not known", and it writes such a one itself.
_NO_LENGTH = 10**20
_NEWER = "Use a newer release, or train the reward model here."
_AS_TRAINED = "Take its files again from where it was trained, or train the reward model here."


def format_of(place: Place) -> InputFormat:
    """CheckpointError for a version that is not known here, for a rubric that is no list of texts,
    and for a way of shortening texts that is not the version's own.
    """
    config = read_object(place, TOKENIZER_CONFIG_FILE)
    version = config.get("stash_input_version", 1)
    if type(version) is not int or version not in INPUT_VERSIONS:
        known = "is known but not supported" if version in KNOWN_INPUT_VERSIONS else "is unknown"
        raise _refusal(
            place,
            f"reads its input in stash_input_version {repr(version)[:100]}, which {known} by this "
            "release; it reads the versions 1 and 3",
            _NEWER,
        )
    side = config.get("truncation_side", "left")
    if side != "left":
        raise _refusal(
            place,
            f"has the truncation_side {repr(side)[:100]}; texts lose their start here, as 'left' "
            "says",
        )
    return _version_1(place, config) if version == 1 else _version_3(place, config)


def _version_1(place: Place, config: Mapping[str, Any]) -> InputFormat:
    # Saying nothing is the contract's own length; the rubric is of version 3 alone.
    _check_length(place, config.get("model_max_length", MAX_TOKENS[1]), 1)
    return InputFormat()


def _version_3(place: Place, config: Mapping[str, Any]) -> InputFormat:
    length = _check_length(place, config.get("model_max_length"), 3)
    positions = read_object(place, CONFIG_FILE).get("max_position_embeddings")
    if isinstance(positions, int) and 0 < positions < length:
        raise _refusal(
            place,
            f"has a model_max_length of {length:,} tokens and only {positions:,} positions in its "
            f"{CONFIG_FILE}; the sections of input version 3 would not be as they were trained",
        )
    # Left out is an empty one, as at Stash. Null is no rubric that anything was trained with.
    rubric = config.get("stash_rubric", [])
    if not isinstance(rubric, list) or not all(isinstance(line, str) for line in rubric):
        raise _refusal(place, "has a stash_rubric that is no list of texts")
    return InputFormat(version=3, rubric=tuple(rubric))


def _check_length(place: Place, length: object, version: int) -> int:
    """The tokens kept of a text. Those of version 3 must be told: its sections share them."""
    most = MAX_TOKENS[version]
    number = length if isinstance(length, int | float) and not isinstance(length, bool) else None
    if version == 1 and number is not None and number >= _NO_LENGTH:
        return most
    if not isinstance(number, int) or not 0 < number <= most:
        raise _refusal(
            place,
            f"has the model_max_length {str(length)[:100]}; input version {version} needs a whole "
            f"number of at most {most:,} tokens there",
        )
    return number


def _refusal(place: Place, problem: str, fix: str = _AS_TRAINED) -> CheckpointError:
    return CheckpointError(f"The reward model {place.shown} {problem}.", fix)
