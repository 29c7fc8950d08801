"""Characters that a skill must not hold, or that nobody sees in one."""

import re
import unicodedata
from collections.abc import Iterator

_PLANES = range(0, 0x110000, 0x10000)
_NONCHARACTERS = "".join(chr(plane + last) for plane in _PLANES for last in (0xFFFE, 0xFFFF))
# Control characters other than tab and LF, halves of surrogate pairs, U+xxFFFE and U+xxFFFF: YAML
# or UTF-8 cannot carry them as they are.
UNPRINTABLE = re.compile(f"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff{_NONCHARACTERS}]")

# Characters that show nothing (Default_Ignorable_Code_Point) or turn the writing's direction.
# U+FE0E and U+FE0F, which choose between the forms of an emoji, are left out.
_HIDDEN = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e"
    "\u2060-\u206f\u3164\ufe00-\ufe0d\ufeff\uffa0\ufff0-\ufffb"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
_JOINERS = "\u200c\u200d"
# Emoji, their skin tones and variation selectors, and letters of scripts without case.
_JOINED = {"So", "Sk", "Mn", "Mc", "Lo"}


def hidden_positions(text: str) -> Iterator[int]:
    """Where `text` has a character that shows nothing or turns the writing's direction."""
    for match in _HIDDEN.finditer(text):
        if not _joins(text, match.start()):
            yield match.start()


def has_hidden(text: str) -> bool:
    return next(hidden_positions(text), None) is not None


def _joins(text: str, position: int) -> bool:
    """Whether a joiner stands between what it is for: parts of an emoji, or of a script's word."""
    if text[position] not in _JOINERS or not 0 < position < len(text) - 1:
        return False
    return all(
        unicodedata.category(c) in _JOINED and not _HIDDEN.match(c)
        for c in (text[position - 1], text[position + 1])
    )
