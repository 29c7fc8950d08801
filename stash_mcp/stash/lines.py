"""An exported file, line by line as it comes."""

from collections.abc import Iterator

from stash_mcp.errors import StashAnswerError
from stash_mcp.stash.connection import Stream

_FIX = "Try again; if it stays, report it to Stash."


def lines(stream: Stream, longest: int) -> Iterator[str]:
    """The non-blank lines, without their ends; `longest` is in bytes.

    StashAnswerError for one that is longer, is not UTF-8, or does not end: then the rest is lost.
    """
    content_type = str(stream.headers.get("content-type", "")).lower()
    if "ndjson" not in content_type and "jsonl" not in content_type:
        raise StashAnswerError(
            "What came is no export of Stash.", "Check that STASH_URL is the address of the API."
        )
    # LF alone: a message may contain U+2028, at which `splitlines` would cut.
    rest = bytearray()
    for chunk in stream.chunks:
        *whole, tail = chunk.split(b"\n")
        for part in whole:
            rest += part
            yield from _line(rest, longest)
            rest = bytearray()
        rest += tail
        if len(rest) > longest:
            raise StashAnswerError("A line of Stash's export is too long.", _FIX)
    if rest.strip():
        raise StashAnswerError("Stash's export ends within a line.", _FIX, passing=True)


def _line(data: bytearray, longest: int) -> Iterator[str]:
    if len(data) > longest:
        raise StashAnswerError("A line of Stash's export is too long.", _FIX)
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise StashAnswerError("Stash's export is not UTF-8 text.", _FIX) from error
    if text.strip():
        yield text
