"""Ours and the reference in turn, so that whatever else the machine does falls on both."""

import time
from collections.abc import Callable, Iterable
from statistics import median
from typing import TypeVar

from benchmarks.benchmark import Row

T = TypeVar("T")


def interleaved(
    ours: Callable[[], T], reference: Callable[[], T], repetitions: int
) -> list[tuple[T, T]]:
    """What each call gave, ours first; which of the two is called first changes every time."""
    pairs = []
    for number in range(repetitions):
        if number % 2:
            second, first = reference(), ours()
        else:
            first, second = ours(), reference()
        pairs.append((first, second))
    return pairs


def compared(
    measured: str, pairs: Iterable[tuple[float, float]], shown: Callable[[float], str]
) -> Row:
    """Medians of both, and the median of the ratios within each pair."""
    pairs = list(pairs)
    return Row(
        measured,
        ours=shown(median(ours for ours, _ in pairs)),
        reference=shown(median(reference for _, reference in pairs)),
        ratio=median(ours / reference for ours, reference in pairs),
        n=len(pairs),
    )


def timed(action: Callable[[], object]) -> float:
    """Seconds that `action` takes."""
    began = time.perf_counter()
    action()
    return time.perf_counter() - began


def seconds(value: float) -> str:
    return f"{value:.2f} s" if value >= 1 else f"{value * 1000:.0f} ms"


def per_second(value: float) -> str:
    return f"{value:,.0f} /s" if value >= 100 else f"{value:.1f} /s"
