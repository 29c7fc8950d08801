"""The split by trace: nothing of a held-out conversation trains, and little is thrown away."""

import itertools

import pytest

from stash_mcp.datasets.pairs import Split, split_pairs
from stash_mcp.models import PreferencePair


def pair(chosen: str, rejected: str, number: int = 0) -> PreferencePair:
    return PreferencePair(
        chosen=f"good {chosen} {number}",
        rejected=f"bad {rejected} {number}",
        chosen_trace_id=chosen,
        rejected_trace_id=rejected,
        granularity="trace",
    )


def every(chosen: int, rejected: int) -> list[PreferencePair]:
    return [
        pair(f"a{good:03}", f"b{bad:03}")
        for good, bad in itertools.product(range(chosen), range(rejected))
    ]


def traces_of(pairs: tuple[PreferencePair, ...]) -> set[str]:
    return {name for p in pairs for name in (p.chosen_trace_id, p.rejected_trace_id)}


def sizes(split: Split) -> tuple[int, int, int]:
    return len(split.train), len(split.eval), split.excluded


def test_no_trace_stands_on_both_sides() -> None:
    split = split_pairs(every(20, 30))
    assert split.eval
    assert not traces_of(split.train) & traces_of(split.eval)


@pytest.mark.parametrize(("chosen", "rejected"), [(50, 50), (20, 80), (7, 40), (3, 4), (1, 1)])
def test_every_pair_trains_measures_or_is_counted_as_excluded(chosen: int, rejected: int) -> None:
    pairs = every(chosen, rejected)
    split = split_pairs(pairs)
    assert sum(sizes(split)) == len(pairs)
    assert set(split.train) | set(split.eval) <= set(pairs)
    assert list(split.train) == [p for p in pairs if p in set(split.train)]


def test_about_a_tenth_of_the_traces_is_held_out() -> None:
    split = split_pairs(every(50, 50))
    assert len(traces_of(split.eval)) == 10
    assert split.reason is None


def test_the_fraction_can_be_chosen() -> None:
    assert len(traces_of(split_pairs(every(50, 50), fraction=0.2).eval)) == 20


def test_the_split_is_the_same_each_time_and_does_not_depend_on_the_order() -> None:
    pairs = every(20, 30)
    split = split_pairs(pairs)
    assert split_pairs(pairs) == split
    assert traces_of(split_pairs(pairs[::-1]).eval) == traces_of(split.eval)


@pytest.mark.parametrize(("chosen", "rejected"), [(3, 4), (6, 6), (12, 12), (4, 90)])
def test_small_data_keeps_at_least_half_of_its_pairs_and_measures_some(
    chosen: int, rejected: int
) -> None:
    pairs = every(chosen, rejected)
    split = split_pairs(pairs)
    assert len(split.eval) >= 1
    assert len(split.train) >= len(pairs) / 2


@pytest.mark.parametrize(("chosen", "rejected"), [(1, 2), (2, 2), (3, 3), (1, 99), (2, 50)])
def test_where_holding_out_costs_most_pairs_everything_trains_with_the_reason(
    chosen: int, rejected: int
) -> None:
    pairs = every(chosen, rejected)
    split = split_pairs(pairs)
    assert sizes(split) == (len(pairs), 0, 0)
    assert split.train == tuple(pairs)
    assert split.reason == (
        f"No held-out accuracy: the {len(pairs)} pairs share their {chosen + rejected} "
        "conversations so much that holding out any of them would leave less than half of the "
        "pairs for training."
    )


def test_a_sparse_choice_of_pairs_still_has_some_to_measure() -> None:
    pairs = [pair(f"a{n}", f"b{n}") for n in range(40)]
    assert sizes(split_pairs(pairs)) == (36, 4, 0)


def test_pairs_of_one_trace_with_itself_can_be_held_out() -> None:
    pairs = [pair(f"a{n}", f"a{n}", number) for n in range(10) for number in range(3)]
    assert sizes(split_pairs(pairs)) == (24, 6, 0)


def test_one_trace_alone_cannot_be_split() -> None:
    pairs = [pair("a", "a", number) for number in range(5)]
    assert sizes(split_pairs(pairs)) == (5, 0, 0)


def test_a_trace_that_is_in_most_pairs_is_never_held_out() -> None:
    pairs = [pair("hub", f"b{n}") for n in range(60)] + [pair(f"a{n}", f"c{n}") for n in range(40)]
    split = split_pairs(pairs)
    assert split.eval
    assert "hub" not in traces_of(split.eval)
