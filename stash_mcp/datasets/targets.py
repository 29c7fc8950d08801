"""What was rated: whole traces and single steps, with the ratings on each summed."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from stash_mcp.models import Annotation, Granularity

GRANULARITIES: tuple[Granularity, ...] = ("trace", "step")

Target = tuple[str, int | None]
"""Trace id and step index; None for the whole trace."""


@dataclass(frozen=True)
class RatingCounts:
    """Of one granularity. `positive`, `negative`, `cancelled`: targets by the sum of their
    ratings; `flagged`: ratings left out because their label was flagged as wrong.
    """

    positive: int
    negative: int
    cancelled: int
    flagged: int

    @property
    def pairs(self) -> int:
        return self.positive * self.negative


def sum_ratings(annotations: Sequence[Annotation]) -> dict[Target, int]:
    """The sum of the unflagged ratings of each rated target; targets without ratings are absent."""
    sums: Counter[Target] = Counter()
    for trace_id, step_index, rating in _ratings(annotations, flagged=False):
        sums[trace_id, step_index] += rating
    return dict(sums)


def count_ratings(
    annotations: Sequence[Annotation], sums: dict[Target, int], granularity: Granularity
) -> RatingCounts:
    """Counts over `sums` and over the flagged ratings of `annotations`."""
    totals = [total for target, total in sums.items() if granularity_of(target[1]) == granularity]
    flagged = [
        step_index
        for _, step_index, _ in _ratings(annotations, flagged=True)
        if granularity_of(step_index) == granularity
    ]
    return RatingCounts(
        positive=sum(total > 0 for total in totals),
        negative=sum(total < 0 for total in totals),
        cancelled=sum(total == 0 for total in totals),
        flagged=len(flagged),
    )


def granularity_of(step_index: int | None) -> Granularity:
    return "trace" if step_index is None else "step"


def _ratings(
    annotations: Sequence[Annotation], *, flagged: bool
) -> Iterator[tuple[str, int | None, int]]:
    for annotation in annotations:
        if annotation.rating is not None and annotation.label_error == flagged:
            yield annotation.trace_id, annotation.step_index, annotation.rating
