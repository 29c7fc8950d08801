"""Characters that must not reach a terminal: conversations come from outside."""

from stash_mcp.skills.characters import hidden_positions

_SHOWN = {"\n", "\t"}
# C0, DEL and C1: with these a text could move the cursor, set the title or hide what it says. Two
# line ends, and halves of surrogate pairs, which no terminal's encoding has.
_CONTROLS = {
    code: f"\\x{code:02x}" for code in (*range(32), *range(127, 160)) if chr(code) not in _SHOWN
} | {code: f"\\u{code:04x}" for code in (0x2028, 0x2029, *range(0xD800, 0xE000))}


def visible(text: str) -> str:
    """`text` with control characters other than line end and tab written out, and so those that
    show nothing or turn the writing's direction, except where they belong to a word or an emoji."""
    if text.isascii():
        return text.translate(_CONTROLS)
    parts: list[str] = []
    begun = 0
    for position in hidden_positions(text):
        parts += [text[begun:position], _written_out(text[position])]
        begun = position + 1
    parts.append(text[begun:])
    return "".join(parts).translate(_CONTROLS)


def _written_out(character: str) -> str:
    code = ord(character)
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
