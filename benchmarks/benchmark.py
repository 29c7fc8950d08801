"""What a benchmark is: something that runs at one of three sizes and gives rows of a table."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Generic, TypeVar

SizeT = TypeVar("SizeT")


class Effort(StrEnum):
    SMALLEST = "smallest"
    """Only shows that it runs; its numbers say nothing."""
    QUICK = "quick"
    FULL = "full"


@dataclass(frozen=True)
class Row:
    """ratio: ours divided by the reference, None where there is no reference. n: repetitions."""

    measured: str
    ours: str = ""
    reference: str = ""
    ratio: float | None = None
    n: int | None = None


@dataclass(frozen=True)
class Benchmark(Generic[SizeT]):
    """`run` takes one of the three sizes; it needs no network and leaves nothing behind."""

    run: Callable[[SizeT], list[Row]]
    smallest: SizeT
    quick: SizeT
    full: SizeT

    def rows(self, effort: Effort) -> list[Row]:
        sizes = {
            Effort.SMALLEST: self.smallest,
            Effort.QUICK: self.quick,
            Effort.FULL: self.full,
        }
        return self.run(sizes[effort])
