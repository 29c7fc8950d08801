"""Text that nobody reads: very long, encoded, behind blank space, or styled out of sight.

Known to be stopped though it may be harmless: an example of HTML with a hidden element, and a long
run of letters without a space.
"""

import re
from collections.abc import Iterator

from stash_mcp.skills.findings import Hit, line_of

MAX_LINE_CHARACTERS = 4_000
MAX_TEXT_LINES = 510
MAX_TEXT_CHARACTERS = 21_500
"""A body's limits (document.py) and the frontmatter above it."""

_BLOB = re.compile(r"[A-Za-z0-9+/=_-]{400,}+")
# U+2800 is the blank of Braille; the others that show nothing are a finding of their own.
_BLANK = r"(?:&(?:nbsp|emsp|ensp|thinsp|#160|#xa0);|[^\S\n\r\x0b\x0c\x85\u2028\u2029]|\u2800)"
_LINE_END = r"(?:[\n\r\x0b\x0c\x85\u2028\u2029]|<br\s{0,3}/?>)"
_NOTHING = re.compile(rf"(?:{_BLANK}|{_LINE_END})++", re.IGNORECASE)
_BLANKS = re.compile(rf"{_BLANK}++", re.IGNORECASE)
_ONE_BLANK = re.compile(_BLANK, re.IGNORECASE)
_ONE_LINE_END = re.compile(_LINE_END, re.IGNORECASE)
_MOST_BLANKS = 120
_MOST_BLANKS_IN_TABLES = 400
_MOST_LINE_ENDS = 40
_TAG = re.compile(r"<[a-z][^<>]{0,800}+", re.IGNORECASE)
_STYLED_AWAY = re.compile(
    r"display\s{0,3}:\s{0,3}none|visibility\s{0,3}:\s{0,3}hidden|opacity\s{0,3}:\s{0,3}0(?![.\d])"
    r"|font-size\s{0,3}:\s{0,3}0(?![.\d])|color\s{0,3}:\s{0,3}transparent|\shidden(?=[\s/=]|$)",
    re.IGNORECASE,
)


def out_of_sight(text: str) -> Iterator[Hit]:
    for number, line in enumerate(text.split("\n"), 1):
        if len(line) > MAX_LINE_CHARACTERS:
            yield number, "high"
    for blob in _BLOB.finditer(text):
        yield line_of(text, blob.start()), "high"
    for tag in _TAG.finditer(text):
        if _STYLED_AWAY.search(tag[0]):
            yield line_of(text, tag.start()), "high"
    for nothing in _NOTHING.finditer(text):
        # Reported where the unseen text begins.
        if nothing.end() < len(text) and _pushes_away(text, nothing):
            yield line_of(text, nothing.end()), "high"


def _pushes_away(text: str, nothing: re.Match[str]) -> bool:
    if len(_ONE_LINE_END.findall(nothing[0])) >= _MOST_LINE_ENDS:
        return True
    longest = max((len(_ONE_BLANK.findall(run)) for run in _BLANKS.findall(nothing[0])), default=0)
    return longest >= (_MOST_BLANKS_IN_TABLES if _in_table(text, nothing) else _MOST_BLANKS)


def _in_table(text: str, nothing: re.Match[str]) -> bool:
    """Whether these are the blanks that align the columns of a table."""
    line = text[text.rfind("\n", 0, nothing.start()) + 1 : nothing.start()]
    return line.lstrip().startswith("|")


def too_long(text: str) -> Iterator[Hit]:
    if len(text) > MAX_TEXT_CHARACTERS or text.count("\n") >= MAX_TEXT_LINES:
        yield 1, "high"
