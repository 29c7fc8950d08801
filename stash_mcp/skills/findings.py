"""What a rule of the scan is, and what it finds."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal

Severity = Literal["high", "low"]
Hit = tuple[int, Severity]
"""Position in the text, in characters from 0, and how bad it is there."""


@dataclass(frozen=True)
class Finding:
    """`line` counts from 1. A `high` one stops an installation; a `low` one is only told."""

    rule: str
    severity: Severity
    line: int
    why: str


@dataclass(frozen=True)
class Rule:
    id: str
    why: str
    find: Callable[[str], Iterable[Hit]]
