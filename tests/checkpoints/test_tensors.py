"""The weights: as long as their shapes, one after the other, of the model, and numbers."""

import json
import math
import struct
from pathlib import Path
from typing import Any

import pytest
from checkpoints.conftest import packed, tar_of

from stash_mcp.checkpoints import unpack, verify_checkpoint, verify_whole_checkpoint
from stash_mcp.errors import CheckpointError

FORMATS = {"F64": "<d", "F32": "<f", "F16": "<e"}
LARGEST = {"F64": 1.7e308, "F32": 3.4e38, "F16": 65504.0, "BF16": 3.3e38}


def row(dtype: str, shape: list[int], start: int, end: int) -> dict[str, Any]:
    return {"dtype": dtype, "shape": shape, "data_offsets": [start, end]}


def write(checkpoint: Path, header: dict[str, Any], data: bytes) -> None:
    text = json.dumps(header).encode()
    weights = len(text).to_bytes(8, "little") + text + data
    (checkpoint / "model.safetensors").write_bytes(weights)


def configure(checkpoint: Path, **config: object) -> None:
    (checkpoint / "config.json").write_text(json.dumps({"num_labels": 1, **config}))


@pytest.mark.parametrize(
    ("header", "length", "said"),
    [
        ({"a": row("F32", [2], 0, 4)}, 4, "the data of a is not as long as its shape needs"),
        ({"a": row("F16", [2, 3], 0, 4)}, 4, "not as long as its shape"),
        ({"a": row("F32", [-1], 0, 4)}, 4, "tensor wrongly"),
        ({"a": row("F32", [1.0], 0, 4)}, 4, "tensor wrongly"),  # type: ignore[list-item]
        ({"a": row("Q4", [1], 0, 4)}, 4, "unknown kind 'Q4'"),
        ({"a": row("F32", [1], 4, 8)}, 8, "does not follow the one before"),
        ({"a": row("F32", [1], 0, 4), "b": row("F32", [1], 8, 12)}, 12, "does not follow"),
        ({"a": row("F32", [2], 0, 8), "b": row("F32", [2], 4, 12)}, 12, "does not follow"),
        ({"a": row("F32", [1], 0, 4), "b": row("F32", [1], 0, 4)}, 4, "does not follow"),
        ({"score.weight": row("F32", [2, 1], 0, 8)}, 8, "has 2 rows, and 1 by the config.json"),
        ({"x.embed_tokens.weight": row("F32", [2, 1], 0, 8)}, 8, "2 rows, and 9 by the config"),
    ],
)
def test_weights_that_do_not_hang_together_are_refused(
    checkpoint: Path, header: dict[str, Any], length: int, said: str
) -> None:
    configure(checkpoint, vocab_size=9)
    write(checkpoint, header, bytes(length))
    with pytest.raises(CheckpointError, match=said) as caught:
        verify_checkpoint(checkpoint)
    assert "is not a whole safetensors file" in caught.value.problem


def test_weights_of_a_model_in_any_order_are_taken(checkpoint: Path) -> None:
    configure(checkpoint, vocab_size=3)
    header = {
        "score.weight": row("F32", [1, 2], 12, 20),
        "model.embed_tokens.weight": row("BF16", [3, 2], 0, 12),
        "empty": row("F32", [0], 20, 20),
        "one": row("I64", [], 20, 28),
    }
    write(checkpoint, header, bytes(28))
    verify_whole_checkpoint(checkpoint)


def number(value: float, dtype: str) -> bytes:
    if dtype == "BF16":
        return struct.pack("<f", value)[2:]
    return struct.pack(FORMATS[dtype], value)


@pytest.mark.parametrize("dtype", LARGEST)
@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, -math.nan])
@pytest.mark.parametrize("place", [0, 7, 9])
def test_a_weight_that_is_no_number_is_found_where_the_model_is_taken_in(
    checkpoint: Path, monkeypatch: pytest.MonkeyPatch, dtype: str, value: float, place: int
) -> None:
    monkeypatch.setattr("stash_mcp.checkpoints.numbers._PIECE_BYTES", 32)
    numbers = [number(LARGEST[dtype], dtype)] * 10
    numbers[place] = number(value, dtype)
    data = b"".join(numbers)
    write(
        checkpoint,
        {"a": row("U8", [16], 0, 16), "b": row(dtype, [10], 16, 16 + len(data))},
        b"\xff" * 16 + data,
    )
    with pytest.raises(CheckpointError, match="weight in b that is infinite or no number"):
        verify_whole_checkpoint(checkpoint)
    # A run does not read gigabytes for it: scoring finds it out, too.
    verify_checkpoint(checkpoint)


@pytest.mark.parametrize("dtype", LARGEST)
def test_the_largest_and_the_smallest_numbers_are_numbers(checkpoint: Path, dtype: str) -> None:
    least = number(0.0, dtype)[:-1] + b"\x80"
    data = number(LARGEST[dtype], dtype) + number(-LARGEST[dtype], dtype) + least
    write(checkpoint, {"a": row(dtype, [3], 0, len(data))}, data)
    verify_whole_checkpoint(checkpoint)


def test_an_archive_with_weights_that_are_no_numbers_is_not_taken(
    checkpoint: Path, tmp_path: Path
) -> None:
    write(checkpoint, {"a": row("F32", [1], 0, 4)}, number(math.nan, "F32"))
    archive = tmp_path / "model.tar.gz"
    archive.write_bytes(packed(tar_of(checkpoint)))
    with pytest.raises(CheckpointError, match=r"model\.safetensors of .*model\.tar\.gz has a w"):
        unpack(archive, tmp_path / "into")
    assert not (tmp_path / "into").exists()
