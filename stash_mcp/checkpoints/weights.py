"""The header of a safetensors file, checked without the library.

The format: 8 bytes, the header's length as a little-endian integer; the header, a JSON object that
gives each tensor its `data_offsets` into what follows; then the data, to the end of the file,
without a gap.
"""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, BinaryIO

from stash_mcp.checkpoints.places import CONFIG_FILE, WEIGHTS_FILE, Place
from stash_mcp.errors import CheckpointError

_LENGTH_BYTES = 8
# Thousands of tensors need less than a megabyte.
_MAX_HEADER_BYTES = 16 * 1024 * 1024
_METADATA = "__metadata__"
_BITS = (
    {"BOOL": 8, "U8": 8, "I8": 8, "F8_E5M2": 8, "F8_E4M3": 8}
    | {"I16": 16, "U16": 16, "F16": 16, "BF16": 16}
    | {"I32": 32, "U32": 32, "F32": 32}
    | {"I64": 64, "U64": 64, "F64": 64}
)
_EMBEDDINGS = ("embed_tokens.weight", "word_embeddings.weight")
_HEADS = ("score.weight", "classifier.weight", "classifier.out_proj.weight")


@dataclass(frozen=True)
class Tensor:
    """start, end: its bytes, counted from the file's beginning."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    start: int
    end: int


def check_weights(place: Place, config: Mapping[str, Any]) -> None:
    """Raise CheckpointError unless the header is sound, the data is as long as it says, and the
    vocabulary and the one label are those of the model's configuration.
    """
    for tensor in read_tensors(place):
        rows = _rows_expected(tensor, config)
        if rows is not None and tensor.shape[0] != rows:
            raise damaged(
                place,
                f"its {tensor.name} has {tensor.shape[0]:,} rows, and {rows:,} by the "
                f"{CONFIG_FILE}",
            )


def read_tensors(place: Place) -> list[Tensor]:
    """In the order of their data."""
    with place.file(WEIGHTS_FILE).open("rb") as file:
        header, data_bytes = _read_header(place, file)
    begin = place.file(WEIGHTS_FILE).stat().st_size - data_bytes
    tensors = [
        _tensor(place, name, entry, begin) for name, entry in header.items() if name != _METADATA
    ]
    if not tensors:
        raise damaged(place, "it holds no tensor")
    tensors.sort(key=lambda tensor: (tensor.start, tensor.end))
    if max(tensor.end for tensor in tensors) != begin + data_bytes:
        raise damaged(place, "its data is not as long as its header says")
    for tensor in tensors:
        if tensor.start != begin:
            raise damaged(place, f"the data of {tensor.name} does not follow the one before")
        begin = tensor.end
    return tensors


def _rows_expected(tensor: Tensor, config: Mapping[str, Any]) -> int | None:
    """How many rows a table of weights has by the configuration; None where that says nothing."""
    if len(tensor.shape) != 2:
        return None
    if tensor.name.endswith(_HEADS):
        return 1
    rows = config.get("vocab_size")
    return rows if tensor.name.endswith(_EMBEDDINGS) and isinstance(rows, int) else None


def _read_header(place: Place, file: BinaryIO) -> tuple[dict[str, Any], int]:
    """The header and how many bytes of data follow it."""
    size = place.file(WEIGHTS_FILE).stat().st_size
    length = int.from_bytes(file.read(_LENGTH_BYTES), "little")
    if size < _LENGTH_BYTES or length > min(size - _LENGTH_BYTES, _MAX_HEADER_BYTES):
        raise damaged(place, "its header's length is wrong")
    try:
        header = json.loads(file.read(length))
    except (ValueError, RecursionError) as error:
        raise damaged(place, "its header is not JSON") from error
    if not isinstance(header, dict):
        raise damaged(place, "its header is not a JSON object")
    return header, size - _LENGTH_BYTES - length


def _tensor(place: Place, name: str, entry: object, begin: int) -> Tensor:
    match entry:
        case {"dtype": str(dtype), "shape": [*shape], "data_offsets": [int(start), int(end)]}:
            if 0 <= start <= end and all(type(side) is int and side >= 0 for side in shape):
                _check_size(place, name, dtype, shape, end - start)
                return Tensor(name[:200], dtype, tuple(shape), begin + start, begin + end)
    raise damaged(place, "its header describes a tensor wrongly")


def _check_size(place: Place, name: str, dtype: str, shape: list[int], size: int) -> None:
    if dtype not in _BITS:
        raise damaged(place, f"{name[:200]} is of the unknown kind {dtype[:50]!r}")
    if math.prod(shape) * _BITS[dtype] // 8 != size:
        raise damaged(place, f"the data of {name[:200]} is not as long as its shape needs")


def damaged(place: Place, why: str) -> CheckpointError:
    return CheckpointError(
        f"{place.name_of(WEIGHTS_FILE)} is not a whole safetensors file: {why}.",
        "Copy it again from where it was trained, or train the reward model again.",
    )
