"""The header of a safetensors file, checked without the library.

The format: 8 bytes, the header's length as a little-endian integer; the header, a JSON object that
gives each tensor its `data_offsets` into what follows; then the data, to the end of the file.
"""

import json
from pathlib import Path
from typing import Any, BinaryIO

from stash_mcp.errors import CheckpointError

_LENGTH_BYTES = 8
_MAX_HEADER_BYTES = 100_000_000
_METADATA = "__metadata__"


def check_weights(path: Path) -> None:
    """Raise CheckpointError unless the header is sound and the data is as long as it says."""
    with path.open("rb") as file:
        header, data_bytes = _read_header(path, file)
    tensors = [entry for name, entry in header.items() if name != _METADATA]
    if not tensors:
        raise _damaged(path, "it holds no tensor")
    if max(_end(path, entry) for entry in tensors) != data_bytes:
        raise _damaged(path, "its data is not as long as its header says")


def _read_header(path: Path, file: BinaryIO) -> tuple[dict[str, Any], int]:
    """The header and how many bytes of data follow it."""
    size = path.stat().st_size
    length = int.from_bytes(file.read(_LENGTH_BYTES), "little")
    if size < _LENGTH_BYTES or length > min(size - _LENGTH_BYTES, _MAX_HEADER_BYTES):
        raise _damaged(path, "its header's length is wrong")
    try:
        header = json.loads(file.read(length))
    except (ValueError, RecursionError) as error:
        raise _damaged(path, "its header is not JSON") from error
    if not isinstance(header, dict):
        raise _damaged(path, "its header is not a JSON object")
    return header, size - _LENGTH_BYTES - length


def _end(path: Path, entry: object) -> int:
    match entry:
        case {"dtype": str(), "shape": list(), "data_offsets": [int(start), int(end)]}:
            if 0 <= start <= end:
                return end
    raise _damaged(path, "its header describes a tensor wrongly")


def _damaged(path: Path, why: str) -> CheckpointError:
    return CheckpointError(
        f"{path} is not a whole safetensors file: {why}.",
        "Copy it again from where it was trained, or train the reward model again.",
    )
