"""Keeping an answer small: every result of a tool fits into 10,000 tokens.

Sizes are in UTF-8 bytes where they bound an answer, because a token holds about four bytes of
English and about three of most other scripts.
"""

from collections.abc import Iterable
from typing import TypeVar

from pydantic import BaseModel

PAGE_BYTES = 24_000
MODEL_CHARACTERS = 200
"""Of a model's name, which is often a path."""
REASON_CHARACTERS = 1000

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
    """`text` with its middle left out, and how much, where it has more than `limit` characters."""
    if len(text) <= limit:
        return text
    head = limit * 2 // 3
    tail = limit - head
    return f"{text[:head]}\n[... {len(text) - limit} characters left out ...]\n{text[-tail:]}"


def characters_within(text: str, budget: int) -> int:
    """How many characters of `text` take about `budget` bytes, for `shorten`."""
    size = len(text.encode("utf-8", errors="replace"))
    return len(text) if size <= budget else len(text) * budget // size


def one_line(text: str, limit: int) -> str:
    """The first non-blank line, cut at `limit` characters."""
    line = next((line.strip() for line in text.split("\n") if line.strip()), "")
    return line if len(line) <= limit else f"{line[: limit - 1]}…"


def brief(text: str | None, limit: int) -> str | None:
    return None if text is None else shorten(text, limit)


def rounded(score: float | None) -> float | None:
    return None if score is None else round(score, 4)
