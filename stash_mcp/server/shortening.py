"""Keeping an answer small: every result of a tool fits into 10,000 tokens.

Sizes are in UTF-8 bytes of JSON where they bound an answer, because a token holds about four bytes
of English and about three of most other scripts.
"""

import json
from collections.abc import Iterable
from typing import TypeVar

from pydantic import BaseModel

PAGE_BYTES = 24_000
MODEL_CHARACTERS = 200
"""Of a model's name, which is often a path."""
REASON_CHARACTERS = 1000
_CHARACTER_BYTES = 3

Row = TypeVar("Row", bound=BaseModel)


def fit(rows: Iterable[Row], budget: int = PAGE_BYTES) -> tuple[Row, ...]:
    """The rows from the front whose JSON takes at most `budget` bytes; the first one always."""
    page: list[Row] = []
    used = 0
    for row in rows:
        used += len(row.model_dump_json().encode("utf-8", errors="replace"))
        if page and used > budget:
            break
        page.append(row)
    return tuple(page)


def next_offset(offset: int, shown: int, total: int) -> int | None:
    """Where the next page starts; None at the end."""
    end = offset + shown
    return end if end < total else None


def shorten(text: str, limit: int) -> str:
    """`text` with its middle left out, and how much, where it has more than `limit` characters, or
    takes more than three bytes for each of them.
    """
    return shorten_within(text, limit * _CHARACTER_BYTES, limit)


def shorten_within(text: str, budget: int, limit: int | None = None) -> str:
    """`shorten` to `budget` bytes of JSON, in which a quotation mark takes two; `limit` in
    characters, if it is given.
    """
    kept = len(text) if limit is None else min(limit, len(text))
    while kept and (size := json_bytes("".join(_ends(text, kept)))) > budget:
        kept = min(kept * budget // size, kept - 1)
    if kept == len(text):
        return text
    head, tail = _ends(text, kept)
    return f"{head}\n[... {len(text) - kept} characters left out ...]\n{tail}"


def first_within(text: str, budget: int) -> str:
    """The beginning of `text` that takes at most `budget` bytes of JSON."""
    text = text[:budget]
    while text and (size := json_bytes(text)) > budget:
        text = text[: min(len(text) * budget // size, len(text) - 1)]
    return text


def json_bytes(text: str) -> int:
    """Without the quotation marks around it."""
    return len(json.dumps(text, ensure_ascii=False).encode("utf-8", errors="replace")) - 2


def _ends(text: str, kept: int) -> tuple[str, str]:
    head = kept * 2 // 3
    return text[:head], text[len(text) - (kept - head) :]


def one_line(text: str, limit: int) -> str:
    """The first non-blank line, cut at `limit` characters."""
    line = next((line.strip() for line in text.split("\n") if line.strip()), "")
    return line if len(line) <= limit else f"{line[: limit - 1]}…"


def brief(text: str | None, limit: int) -> str | None:
    return None if text is None else shorten(text, limit)


def rounded(score: float | None) -> float | None:
    return None if score is None else round(score, 4)
