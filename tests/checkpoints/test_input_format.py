"""What a checkpoint says of its input: read here as it was in training, or refused by name."""

import json
from pathlib import Path

import pytest

from stash_mcp.checkpoints import read_input_format, verify_checkpoint
from stash_mcp.errors import CheckpointError

VERSION_3 = {
    "stash_input_version": 3,
    "stash_rubric": ["Be kind."],
    "truncation_side": "left",
    "model_max_length": 4096,
}
UNLIMITED = 1000000000000000019884624838656
"""What transformers writes where it knows no length."""
LEFT_OUT = object()


def said(checkpoint: Path, settings: dict[str, object], positions: object = LEFT_OUT) -> None:
    kept = {key: value for key, value in settings.items() if value is not LEFT_OUT}
    (checkpoint / "tokenizer_config.json").write_text(json.dumps(kept), encoding="utf-8")
    if positions is not LEFT_OUT:
        path = checkpoint / "config.json"
        config = json.loads(path.read_bytes())
        path.write_text(json.dumps({**config, "max_position_embeddings": positions}))


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"truncation_side": "left", "model_max_length": 1024},
        {"model_max_length": 1},
        {"model_max_length": UNLIMITED},
        {"model_max_length": 1e30},
        {"stash_input_version": 1, "stash_rubric": None},
    ],
)
def test_version_1_is_taken_with_the_contracts_length_or_less(
    checkpoint: Path, settings: dict[str, object]
) -> None:
    said(checkpoint, settings)
    verify_checkpoint(checkpoint)
    assert read_input_format(checkpoint).version == 1


@pytest.mark.parametrize("rubric", [["Be kind."], [], LEFT_OUT])
@pytest.mark.parametrize(("length", "positions"), [(4096, LEFT_OUT), (4096, 40_960), (512, 512)])
def test_version_3_is_taken_with_a_length_that_the_model_has(
    checkpoint: Path, rubric: object, length: int, positions: object
) -> None:
    said(checkpoint, {**VERSION_3, "stash_rubric": rubric, "model_max_length": length}, positions)
    verify_checkpoint(checkpoint)
    assert read_input_format(checkpoint).rubric == (("Be kind.",) if rubric == ["Be kind."] else ())


@pytest.mark.parametrize("base", [{}, VERSION_3], ids=["version 1", "version 3"])
@pytest.mark.parametrize(
    ("key", "values", "name"),
    [
        ("truncation_side", ("right", "RIGHT", None, 0, [], "x" * 5000), "truncation_side"),
        ("model_max_length", (0, -1, 1.5, "1024", True, None, [], 4097, 10**19), "max_length"),
        ("stash_input_version", (0, 2, 4, -3, "3", 3.0, True, None, [3], {}), "input_version"),
    ],
)
def test_what_cannot_be_read_as_it_was_trained_is_refused_by_name(
    checkpoint: Path, base: dict[str, object], key: str, values: tuple[object, ...], name: str
) -> None:
    for value in values:
        said(checkpoint, {**base, key: value})
        with pytest.raises(CheckpointError, match=name) as caught:
            verify_checkpoint(checkpoint)
        assert len(caught.value.problem) < 700
        assert str(value)[:50].strip("'") in caught.value.problem
        with pytest.raises(CheckpointError, match=name):
            read_input_format(checkpoint)


@pytest.mark.parametrize("length", [1025, 4096, 131_072])
def test_version_1_with_more_tokens_than_the_contracts_is_refused(
    checkpoint: Path, length: int
) -> None:
    said(checkpoint, {"model_max_length": length})
    with pytest.raises(CheckpointError, match=r"of at most 1,024 tokens"):
        verify_checkpoint(checkpoint)


@pytest.mark.parametrize(
    ("changes", "positions", "problem"),
    [
        ({"stash_rubric": None}, LEFT_OUT, "stash_rubric that is no list"),
        ({"stash_rubric": "kind"}, LEFT_OUT, "stash_rubric that is no list"),
        ({"stash_rubric": ["kind", 7]}, LEFT_OUT, "stash_rubric that is no list"),
        ({"stash_rubric": {}}, LEFT_OUT, "stash_rubric that is no list"),
        ({"model_max_length": LEFT_OUT}, LEFT_OUT, "model_max_length None; input version 3 needs"),
        ({"model_max_length": UNLIMITED}, LEFT_OUT, "input version 3 needs"),
        ({}, 512, "4,096 tokens and only 512 positions"),
    ],
)
def test_version_3_needs_its_rubric_its_length_and_the_positions_for_it(
    checkpoint: Path, changes: dict[str, object], positions: object, problem: str
) -> None:
    said(checkpoint, {**VERSION_3, **changes}, positions)
    with pytest.raises(CheckpointError, match=problem):
        verify_checkpoint(checkpoint)
