"""Characters that must not reach a terminal: conversations come from outside."""

_SHOWN = {"\n", "\t"}
# C0, DEL and C1: with these a text could move the cursor, set the title or hide what it says.
_CONTROLS = {
    code: f"\\x{code:02x}" for code in (*range(32), *range(127, 160)) if chr(code) not in _SHOWN
}


def visible(text: str) -> str:
    """`text` with control characters other than line end and tab written out."""
    return text.translate(_CONTROLS)
