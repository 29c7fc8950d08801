"""Preference pairs: which, in which order, how many, and what is said of too few."""

import random
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import pytest

from stash_mcp.datasets.pairs import build_pairs
from stash_mcp.errors import PairsError
from stash_mcp.models import Annotation, PreferencePair, Step, Trace

NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)


def trace(trace_id: str) -> Trace:
    return Trace(
        id=trace_id,
        steps=(
            Step(role="system", content="Be kind."),
            Step(role="user", content=f"{trace_id} asks"),
            Step(role="assistant", content=f"{trace_id} answers"),
            Step(role="assistant", content=f"{trace_id} adds"),
        ),
    )


def rated(trace_id: str, rating: Any, step_index: int | None = None, **fields: Any) -> Annotation:
    return Annotation(
        id=f"{trace_id}-{step_index}-{rating}",
        trace_id=trace_id,
        step_index=step_index,
        rating=rating,
        created_at=NOON,
        **fields,
    )


def pairs_of(annotations: Sequence[Annotation], max_pairs: int = 4000) -> list[tuple[str, str]]:
    """Texts of the pairs; the traces are those that are annotated, given in reverse order."""
    names = sorted({annotation.trace_id for annotation in annotations}, reverse=True)
    pairs = build_pairs(map(trace, names), annotations, max_pairs)
    return [(pair.chosen, pair.rejected) for pair in pairs]


def problem_of(*annotations: Annotation) -> PairsError:
    with pytest.raises(PairsError) as caught:
        pairs_of(annotations)
    return caught.value


def whole(name: str) -> str:
    return f"user: {name} asks\n\nassistant: {name} answers\n\nassistant: {name} adds"


def first_reply(name: str) -> str:
    return f"user: {name} asks\n\nassistant: {name} answers"


def test_every_chosen_trace_is_paired_with_every_rejected_one() -> None:
    ratings = [rated("a", 1), rated("b", -1), rated("c", 1), rated("d", -1)]
    assert sorted(pairs_of(ratings)) == [(whole(good), whole(bad)) for good in "ac" for bad in "bd"]


def test_a_step_is_rendered_with_what_came_before_it() -> None:
    ratings = [rated("a", 1, 2), rated("b", -1, 2), rated("a", -1, 3)]
    assert sorted(pairs_of(ratings)) == [
        (first_reply("a"), whole("a")),
        (first_reply("a"), first_reply("b")),
    ]


def test_no_system_text_reaches_a_pair() -> None:
    texts = pairs_of([rated("a", 1), rated("b", -1), rated("c", -1)])
    assert not any("Be kind." in text for pair in texts for text in pair)


def test_a_pair_says_where_it_comes_from() -> None:
    annotations = [rated("a", 1, 2), rated("b", -1, 2), rated("b", -1, 3)]
    pairs = build_pairs(map(trace, "ab"), annotations, 4000)
    assert set(pairs) == {
        PreferencePair(
            chosen=first_reply("a"),
            rejected=text,
            chosen_trace_id="a",
            rejected_trace_id="b",
            granularity="step",
        )
        for text in (first_reply("b"), whole("b"))
    }


def test_the_order_is_the_contracts_shuffle_of_traces_before_steps() -> None:
    ratings = [rated(name, 1) for name in "acd"] + [rated(name, -1) for name in "be"]
    ratings += [rated("b", 1, 2), rated("a", 1, 3), rated("a", 1, 2)]
    ratings += [rated("c", -1, 3), rated("d", -1, 2)]
    good_steps = [first_reply("a"), whole("a"), first_reply("b")]
    bad_steps = [whole("c"), first_reply("d")]
    expected = [(whole(good), whole(bad)) for good in "acd" for bad in "be"]
    expected += [(good, bad) for good in good_steps for bad in bad_steps]
    random.Random(0).shuffle(expected)
    assert pairs_of(ratings) == expected
    assert pairs_of(ratings[::-1]) == expected


def test_the_cap_keeps_the_first_of_the_shuffled_pairs() -> None:
    ratings = [rated(f"a{n}", 1) for n in range(6)] + [rated(f"b{n}", -1) for n in range(6)]
    assert pairs_of(ratings, max_pairs=5) == pairs_of(ratings)[:5]
    assert len(pairs_of(ratings)) == 36


def test_ratings_of_one_target_are_summed() -> None:
    ratings = [rated("a", 1), rated("a", 1), rated("a", -1), rated("b", -1), rated("c", -1)]
    ratings += [rated("d", 1), rated("d", -1)]
    assert sorted(pairs_of(ratings)) == [(whole("a"), whole("b")), (whole("a"), whole("c"))]


def test_flagged_ratings_do_not_count() -> None:
    ratings = [rated("a", 1), rated("b", -1), rated("c", -1)]
    flagged = [rated("a", -1, label_error=True)] * 3 + [rated("d", -1, label_error=True)]
    assert pairs_of(ratings + flagged) == pairs_of(ratings)


def test_comments_without_a_rating_do_not_count() -> None:
    ratings = [rated("a", 1), rated("b", -1), rated("c", -1)]
    assert pairs_of([*ratings, rated("d", None, comment="Hm")]) == pairs_of(ratings)


def test_ratings_on_other_traces_do_not_count() -> None:
    ratings = [rated("a", 1), rated("b", -1), rated("c", -1), rated("z", -1)]
    pairs = build_pairs(map(trace, "abc"), ratings, 4000)
    assert {pair.rejected_trace_id for pair in pairs} == {"b", "c"}


def test_each_target_is_rendered_once_and_shared_by_its_pairs() -> None:
    ratings = [rated(f"a{n}", 1) for n in range(9)] + [rated(f"b{n}", -1) for n in range(9)]
    names = [annotation.trace_id for annotation in ratings]
    pairs = build_pairs(map(trace, names), ratings, 4000)
    assert len(pairs) == 81
    assert len({id(text) for pair in pairs for text in (pair.chosen, pair.rejected)}) == 18


@pytest.mark.parametrize(
    ("annotations", "counts", "advice"),
    [
        ([rated("a", None, comment="Hm")], ("0 positive, 0 negative",) * 2, "Nothing is rated yet"),
        (
            [rated("a", 1), rated("b", 1), rated("b", 1, 2)],
            ("2 positive, 0 negative", "1 positive, 0 negative"),
            "All ratings are positive: rate some with -1 too.",
        ),
        (
            [rated("a", -1), rated("b", -1)],
            ("0 positive, 2 negative", "0 positive, 0 negative"),
            "All ratings are negative: rate some with +1 too.",
        ),
        (
            [rated("a", 1, 2), rated("b", -1)],
            ("0 positive, 1 negative", "1 positive, 0 negative"),
            "The positive and the negative ratings are on different kinds",
        ),
        (
            [rated("a", 1), rated("a", -1)],
            (
                "0 positive, 0 negative, 1 whose ratings cancel out",
                "0 positive, 0 negative",
            ),
            "Every target has as many +1 as -1",
        ),
        (
            [rated("a", 1, label_error=True), rated("b", -1, 2, label_error=True)],
            (
                "0 positive, 0 negative, 1 flagged as wrong and left out",
                "0 positive, 0 negative, 1 flagged as wrong and left out",
            ),
            "Every rating is flagged as wrong",
        ),
    ],
)
def test_too_few_pairs_say_what_is_there_and_what_to_annotate(
    annotations: list[Annotation], counts: tuple[str, str], advice: str
) -> None:
    error = problem_of(*annotations)
    assert error.problem == (
        "The ratings give 0 preference pairs; a training needs at least 2. "
        f"Whole conversations: {counts[0]}. Steps: {counts[1]}."
    )
    assert error.fix.startswith(advice)


def test_a_single_pair_is_too_few() -> None:
    error = problem_of(rated("a", 1), rated("b", -1))
    assert error.problem.startswith("The ratings give 1 preference pair; a training needs")
    assert error.fix.startswith("Rate at least one more.")


def test_one_pair_of_each_granularity_is_enough() -> None:
    ratings = [rated("a", 1), rated("b", -1), rated("a", 1, 2), rated("b", -1, 2)]
    assert len(pairs_of(ratings)) == 2


def test_no_traces_at_all_are_too_few_pairs() -> None:
    with pytest.raises(PairsError, match="Nothing is rated yet"):
        build_pairs([], [rated("a", 1), rated("b", -1), rated("c", -1)], 4000)
