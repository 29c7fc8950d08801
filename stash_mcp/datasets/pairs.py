"""Ratings -> preference pairs, and the split that keeps some for measuring.

The order of the pairs is part of the contract: every chosen target with every rejected one of its
granularity, whole traces before steps, targets by trace id and step; then one seeded shuffle.
"""

import random
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from stash_mcp.datasets.shortage import MIN_PAIRS, too_few_pairs
from stash_mcp.datasets.shuffling import LONGEST, shuffled_front
from stash_mcp.datasets.targets import (
    GRANULARITIES,
    Target,
    count_ratings,
    sum_ratings,
)
from stash_mcp.errors import PairsError
from stash_mcp.models import Annotation, Granularity, PreferencePair, Trace
from stash_mcp.rendering import render_steps

_SEED = 0
_LEAST_TRAINED = 0.5
"""A hold-out that leaves less than this part of the pairs for training is not worth its price."""


# --- pairs ---


@dataclass(frozen=True)
class _Rated:
    """A rated target as text. `step_index` is -1 for the whole trace, which comes first."""

    trace_id: str
    step_index: int
    is_chosen: bool
    text: str


@dataclass
class _Block:
    """The targets of one granularity, by what their ratings sum to."""

    granularity: Granularity
    chosen: list[_Rated] = field(default_factory=list)
    rejected: list[_Rated] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.chosen) * len(self.rejected)

    def pair(self, index: int) -> PreferencePair:
        """Pair `index` of every chosen one with every rejected one in turn."""
        chosen, rejected = divmod(index, len(self.rejected))
        good, bad = self.chosen[chosen], self.rejected[rejected]
        return PreferencePair(
            chosen=good.text,
            rejected=bad.text,
            chosen_trace_id=good.trace_id,
            rejected_trace_id=bad.trace_id,
            granularity=self.granularity,
        )


def build_pairs(
    traces: Iterable[Trace], annotations: Sequence[Annotation], max_pairs: int
) -> tuple[PreferencePair, ...]:
    """The pairs in their seeded order, at most `max_pairs` (2 or more).

    Annotations on other traces are ignored. Each rated target is rendered once, and its pairs
    share that string. Time grows with all pairs before the cap, about 0.2 s a million. PairsError
    for fewer than 2, and for more than four billion.
    """
    known: list[str] = []
    blocks = _blocks(_rated_targets(traces, sum_ratings(annotations), known))
    total = sum(len(block) for block in blocks)
    if total < MIN_PAIRS:
        raise _too_few(annotations, set(known))
    if total > LONGEST:
        raise PairsError(
            f"The ratings give {total:,} preference pairs, more than can be put in order.",
            "Train on a part of the conversations (trace_ids).",
        )
    chosen = shuffled_front(total, max_pairs, _SEED)
    return tuple(_pair(blocks, index) for index in chosen)


def _rated_targets(
    traces: Iterable[Trace], sums: dict[Target, int], known: list[str]
) -> Iterator[_Rated]:
    """The targets with a sum other than 0, rendered; `known` collects the ids of the traces."""
    by_trace: dict[str, list[tuple[int | None, int]]] = defaultdict(list)
    for (trace_id, step_index), total in sums.items():
        if total:
            by_trace[trace_id].append((step_index, total))
    for trace in traces:
        known.append(trace.id)
        for step_index, total in by_trace[trace.id]:
            if step_index is None:
                yield _Rated(trace.id, -1, total > 0, render_steps(trace.steps))
            else:
                shown = trace.steps[: step_index + 1]
                yield _Rated(trace.id, step_index, total > 0, render_steps(shown))


def _blocks(rated: Iterable[_Rated]) -> tuple[_Block, ...]:
    blocks = {kind: _Block(kind) for kind in GRANULARITIES}
    for target in sorted(rated, key=lambda target: (target.trace_id, target.step_index)):
        block = blocks["trace" if target.step_index < 0 else "step"]
        (block.chosen if target.is_chosen else block.rejected).append(target)
    return tuple(blocks.values())


def _too_few(annotations: Sequence[Annotation], trace_ids: set[str]) -> PairsError:
    own = [annotation for annotation in annotations if annotation.trace_id in trace_ids]
    sums = sum_ratings(own)
    on_traces, on_steps = (count_ratings(own, sums, kind) for kind in GRANULARITIES)
    return too_few_pairs(on_traces, on_steps)


def _pair(blocks: Sequence[_Block], index: int) -> PreferencePair:
    for block in blocks:
        if index < len(block):
            return block.pair(index)
        index -= len(block)
    raise IndexError(index)


# --- the split ---


@dataclass(frozen=True)
class Split:
    """`excluded`: pairs dropped because only one of their traces is held out. `reason`: one
    sentence on why nothing is held out, or None.
    """

    train: tuple[PreferencePair, ...]
    eval: tuple[PreferencePair, ...]
    excluded: int
    reason: str | None


def split_pairs(pairs: Sequence[PreferencePair], fraction: float = 0.1) -> Split:
    """Hold out about `fraction` of the traces: pairs of two held-out traces measure, pairs of none
    train, the others are dropped.

    Traces are held out by joining the two of a pair, in a seeded order, so that there is something
    to measure: up to `fraction` of them, at least one such pair, and only while at least half of
    all pairs stay for training. Where not even one pair can be held out so (few traces, or one
    that is in most pairs), everything trains: with ratings on whole traces alone that is so below 7
    traces.
    """
    graph = _PairGraph(pairs)
    wanted = max(2, round(fraction * len(graph.neighbours)))
    held = graph.hold_out(wanted, least_kept=_LEAST_TRAINED * len(pairs))
    if not held:
        return Split(tuple(pairs), (), 0, _no_split(len(pairs), len(graph.neighbours)))
    sides = [_held_sides(pair, held) for pair in pairs]
    return Split(
        train=tuple(pair for pair, side in zip(pairs, sides, strict=True) if side == 0),
        eval=tuple(pair for pair, side in zip(pairs, sides, strict=True) if side == 2),
        excluded=sides.count(1),
        reason=None,
    )


def _held_sides(pair: PreferencePair, held: set[str]) -> int:
    return (pair.chosen_trace_id in held) + (pair.rejected_trace_id in held)


def _no_split(pairs: int, traces: int) -> str:
    return (
        f"No held-out accuracy: the {pairs} pairs share their {traces} conversations so much that "
        "holding out any of them would leave less than half of the pairs for training."
    )


class _PairGraph:
    """Traces, joined by their pairs. `neighbours[a][b]`: pairs of a with b; a pair of one trace's
    own steps joins it to itself.
    """

    def __init__(self, pairs: Sequence[PreferencePair]) -> None:
        self.neighbours: dict[str, Counter[str]] = defaultdict(Counter)
        for pair in pairs:
            first, second = sorted((pair.chosen_trace_id, pair.rejected_trace_id))
            self.neighbours[first][second] += 1
            if first != second:
                self.neighbours[second][first] += 1
        self._kept = len(pairs)
        self._live = {trace: joined.total() for trace, joined in self.neighbours.items()}

    def hold_out(self, wanted: int, least_kept: float) -> set[str]:
        """Up to `wanted` traces, both ends of at least one pair; none where that would touch so
        many pairs that fewer than `least_kept` stay.
        """
        held: set[str] = set()
        for ends in self._joined():
            new = set(ends) - held
            if not new or len(held) + len(new) > wanted:
                continue
            if self._kept - self._touched(new) < least_kept:
                continue
            for trace in sorted(new):
                self._take(trace, held)
            if len(held) == wanted:
                break
        return held

    def _joined(self) -> list[tuple[str, str]]:
        joined = sorted(
            (first, second)
            for first, others in self.neighbours.items()
            for second in others
            if first <= second
        )
        random.Random(_SEED).shuffle(joined)
        return joined

    def _touched(self, new: set[str]) -> int:
        """Pairs that no held-out trace touches yet and that `new` would touch."""
        return sum(self._live[trace] for trace in new) - (
            self.neighbours[min(new)][max(new)] if len(new) == 2 else 0
        )

    def _take(self, trace: str, held: set[str]) -> None:
        self._kept -= self._live[trace]
        for other, count in self.neighbours[trace].items():
            if other not in held:
                self._live[other] -= count
        held.add(trace)
