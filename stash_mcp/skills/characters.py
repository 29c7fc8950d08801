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
_UNSEEN = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e"
    "\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
_SOFT_HYPHEN = "\u00ad"
_EMOJI_STYLES = "\ufe0e\ufe0f"
_NON_JOINER, _JOINER = "\u200c", "\u200d"
# What U+FE0E and U+FE0F choose a form of: emoji, and the signs and digits that can be one.
_STYLED = {"So", "Sk", "Sm"}
_STYLED_SIGNS = "0123456789#*\u203c\u2049\u2139\u3030"
# Scripts whose letters join: Arabic and its neighbours, those of India, Burmese, Khmer, Mongolian.
_JOINING_SCRIPT = re.compile(
    "[\u0600-\u08ff\u0900-\u0dff\u1000-\u109f\u1780-\u18af\ufb50-\ufdff\ufe70-\ufefc]"
)


def hidden_positions(text: str) -> Iterator[int]:
    """Where `text` has a character that shows nothing or turns the writing's direction.

    Not where such a character does its work: a joiner within an emoji or a joining script's word, a
    choice between the forms of an emoji, a soft hyphen between two letters.
    """
    for match in _UNSEEN.finditer(text):
        if _hides(text, match.start()):
            yield match.start()


def has_hidden(text: str) -> bool:
    return next(hidden_positions(text), None) is not None


def shown(text: str) -> str:
    """`text` without the characters that show nothing, wherever they stand."""
    return _UNSEEN.sub("", text)


def _hides(text: str, position: int) -> bool:
    character = text[position]
    before, after = text[position - 1 : position], text[position + 1 : position + 2]
    if character == _SOFT_HYPHEN:
        return not (before.isalpha() and after.isalpha())
    if character in _EMOJI_STYLES:
        return not _takes_style(before)
    if character in (_NON_JOINER, _JOINER) and before and after:
        return not (_joining(before) and _joining(after)) and not (
            character == _JOINER and _ends_emoji(text, position - 1) and _takes_style(after)
        )
    return True


def _joining(character: str) -> bool:
    return bool(_JOINING_SCRIPT.match(character)) and not _UNSEEN.match(character)


def _takes_style(character: str) -> bool:
    return character != "" and (
        character in _STYLED_SIGNS or unicodedata.category(character) in _STYLED
    )


def _ends_emoji(text: str, position: int) -> bool:
    if text[position] in _EMOJI_STYLES:
        return _takes_style(text[position - 1 : position])
    return _takes_style(text[position])
