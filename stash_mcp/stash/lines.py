"""An exported file, line by line as it comes."""

import codecs
from collections.abc import Callable, Iterator, Sequence

from stash_mcp.errors import StashAnswerError
from stash_mcp.stash.answers import without
from stash_mcp.stash.connection import Stream
from stash_mcp.stash.shapes import Unread

_FIX = "Try again; if it stays, report it to Stash."

Odd = Callable[[Unread], None]
"""Told of what is left out."""


def lines(stream: Stream, longest: int, odd: Odd, secrets: Sequence[str]) -> Iterator[str]:
    """The non-blank lines, without their ends and without the key.

    One that is longer than `longest` bytes, which is never held whole, or is not UTF-8 is told to
    `odd` instead. StashAnswerError for a file that does not end: then the rest is lost.
    """
    content_type = str(stream.headers.get("content-type", "")).lower()
    if "ndjson" not in content_type and "jsonl" not in content_type:
        raise StashAnswerError(
            "What came is no export of Stash.", "Check that STASH_URL is the address of the API."
        )
    # LF alone: a message may contain U+2028, at which `splitlines` would cut.
    line = _Line(longest)
    for number, (part, is_end) in enumerate(_parts(stream.chunks)):
        line.add(part.removeprefix(codecs.BOM_UTF8) if number == 0 else part)
        if is_end:
            yield from _taken(line, odd, secrets)
            line = _Line(longest)
    if line.size and (line.data is None or line.data.strip()):
        raise StashAnswerError("Stash's export ends within a line.", _FIX, passing=True)


def _parts(chunks: Iterator[bytes]) -> Iterator[tuple[bytes, bool]]:
    """Pieces of lines, and whether the line ends with it."""
    for chunk in chunks:
        *whole, tail = chunk.split(b"\n")
        yield from ((part, True) for part in whole)
        yield tail, False


class _Line:
    """data: None once it is too long."""

    def __init__(self, longest: int) -> None:
        self._longest = longest
        self.size = 0
        self.data: bytearray | None = bytearray()

    def add(self, part: bytes) -> None:
        self.size += len(part)
        if self.size > self._longest:
            self.data = None
        elif self.data is not None:
            self.data += part


def _taken(line: _Line, odd: Odd, secrets: Sequence[str]) -> Iterator[str]:
    if line.data is None:
        odd(Unread(why=f"a line of its export is {line.size:,} bytes long"))
        return
    try:
        text = without(bytes(line.data), secrets).decode("utf-8")
    except UnicodeDecodeError:
        odd(Unread(why="a line of its export is not UTF-8 text"))
        return
    if text.strip():
        yield text
