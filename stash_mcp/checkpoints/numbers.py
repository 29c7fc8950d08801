"""Whether every weight is a finite number, read in pieces and without a numeric library.

One that is not makes every reward NaN; scoring finds that out too, but hours of work later.
"""

from collections.abc import Iterator
from functools import cache
from typing import BinaryIO

from stash_mcp.checkpoints.places import WEIGHTS_FILE, Place
from stash_mcp.checkpoints.weights import Tensor, read_tensors
from stash_mcp.errors import CheckpointError

_PIECE_BYTES = 4 * 1024 * 1024
_WIDTHS = {"F64": 8, "F32": 4, "BF16": 2, "F16": 2}
# Infinite and NaN are what has all bits of its exponent set. In little-endian order the exponent
# ends in the last byte; all of it but the sign, and for three kinds some bits of the one before.
_ALL_SET = {"F64": (0x7F, 0xF0), "F32": (0x7F, 0x80), "BF16": (0x7F, 0x80), "F16": (0x7C, 0)}


def check_numbers(place: Place) -> None:
    """Raise CheckpointError for a checked file with a weight that is infinite or no number."""
    with place.file(WEIGHTS_FILE).open("rb") as file:
        for tensor in read_tensors(place):
            if tensor.dtype in _WIDTHS and any(
                _has_no_number(piece, tensor.dtype) for piece in _pieces(file, tensor)
            ):
                raise CheckpointError(
                    f"{place.name_of(WEIGHTS_FILE)} has a weight in {tensor.name} that is infinite "
                    "or no number.",
                    "Train the reward model again, with a smaller learning rate.",
                )


def _pieces(file: BinaryIO, tensor: Tensor) -> Iterator[bytes]:
    file.seek(tensor.start)
    left = tensor.end - tensor.start
    while left and (piece := file.read(min(left, _PIECE_BYTES))):
        left -= len(piece)
        yield piece


def _has_no_number(piece: bytes, dtype: str) -> bool:
    # Whole pieces at a time: a loop over each weight would take minutes.
    width = _WIDTHS[dtype]
    last, before = (
        int.from_bytes(piece[width - place :: width].translate(_marking(bits)), "little")
        for place, bits in enumerate(_ALL_SET[dtype], start=1)
    )
    return last & before != 0


@cache
def _marking(bits: int) -> bytes:
    """A table for `bytes.translate`: 255 for a byte that has all these bits set, 0 for others."""
    return bytes(255 if byte & bits == bits else 0 for byte in range(256))
