"""Text of others inside Markdown of ours."""

import re

_FENCES = re.compile(r"`{3,}")


def fenced(text: str, language: str = "") -> str:
    """`text` as a code block whose fence is longer than any in it."""
    longest = max((len(found) for found in _FENCES.findall(text)), default=2)
    fence = "`" * (longest + 1)
    return f"{fence}{language}\n{text}\n{fence}"


def cell(text: str) -> str:
    """`text` as one cell of a table."""
    return " ".join(text.split()).replace("|", "\\|")
