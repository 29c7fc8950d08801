"""What a rule of the scan is, and what it finds."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal

Severity = Literal["high", "low"]
Hit = tuple[int, Severity]
"""Line of the text, from 1, and how bad it is there."""


@dataclass(frozen=True)
class Finding:
    """`line` counts from 1. A `high` one stops an installation; a `low` one is only told."""

    rule: str
    severity: Severity
    line: int
    why: str


@dataclass(frozen=True)
class Rule:
    """`find` takes time that grows with the text's length and no faster, whatever it holds: its
    patterns are bounded, and what may stand far apart is looked for in steps (reading.py)."""

    id: str
    why: str
    find: Callable[[str], Iterable[Hit]]


def line_of(text: str, position: int) -> int:
    return text.count("\n", 0, position) + 1
