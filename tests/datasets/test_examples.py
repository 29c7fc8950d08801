"""What GEPA replays: input, system prompt, feedback, skipped traces, held-out examples."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from stash_mcp.datasets.examples import build_examples, split_heldout
from stash_mcp.errors import ExamplesError
from stash_mcp.models import Annotation, Example, Message, Skipped, Step, Trace

NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)


def trace(trace_id: str, *roles: Any) -> Trace:
    steps = [Step(role=role, content=f"{role} {n}") for n, role in enumerate(roles)]
    return Trace(id=trace_id, steps=tuple(steps))


def comment(trace_id: str, text: str | None, minutes: int, **fields: Any) -> Annotation:
    return Annotation(
        id=f"{trace_id}-{minutes}",
        trace_id=trace_id,
        comment=text,
        created_at=NOON + timedelta(minutes=minutes),
        **fields,
    )


def examples(count: int) -> list[Example]:
    """Conversations that each ask something else."""
    return [
        Example(
            trace_id=f"t{n:03}",
            system=None,
            messages=(Message(role="user", content=f"Hi {n}"),),
            feedback=(),
        )
        for n in range(count)
    ]


def test_conversations_that_begin_alike_stay_on_one_side() -> None:
    twins = [row.model_copy(update={"trace_id": f"{row.trace_id}-b"}) for row in examples(24)]
    ordered, count = split_heldout([*examples(24), *twins], seed=1)
    assert count == 12
    seen = {row.messages for row in ordered[:-count]}
    assert not seen & {row.messages for row in ordered[-count:]}


def test_many_conversations_with_few_questions_hold_nothing_out() -> None:
    same = [row.model_copy(update={"messages": examples(1)[0].messages}) for row in examples(40)]
    assert split_heldout(same, seed=1)[1] == 0


def test_an_example_is_the_trace_up_to_its_first_assistant_step() -> None:
    built = build_examples([trace("a", "system", "user", "user", "assistant", "user")], [])
    assert built.examples == (
        Example(
            trace_id="a",
            system="system 0",
            messages=(
                Message(role="user", content="user 1"),
                Message(role="user", content="user 2"),
            ),
            feedback=(),
        ),
    )
    assert built.skipped == ()


def test_all_system_steps_are_joined_by_a_blank_line() -> None:
    [example] = build_examples([trace("a", "system", "user", "assistant", "system")], []).examples
    assert example.system == "system 0\n\nsystem 3"


def test_without_system_steps_the_system_prompt_is_none() -> None:
    assert build_examples([trace("a", "user", "assistant")], []).examples[0].system is None


def test_a_trace_without_an_assistant_step_is_all_input() -> None:
    [example] = build_examples([trace("a", "user", "tool", "user")], []).examples
    assert [message.role for message in example.messages] == ["user", "tool", "user"]


def test_feedback_is_every_unflagged_comment_on_the_trace_and_its_steps_oldest_first() -> None:
    annotations = [
        comment("a", "third", 3),
        comment("a", "first", 1, step_index=1, rating=-1),
        comment("b", "of another trace", 0),
        comment("a", "flagged", 0, label_error=True),
        comment("a", None, 0, rating=1),
        comment("a", "  ", 0, rating=1),
        comment("a", "second", 2, step_index=0),
    ]
    [example] = build_examples([trace("a", "user", "assistant")], annotations).examples
    assert example.feedback == ("first", "second", "third")


def test_comments_of_one_moment_keep_their_order() -> None:
    annotations = [comment("a", text, 0) for text in ("x", "b", "a")]
    [example] = build_examples([trace("a", "user")], annotations).examples
    assert example.feedback == ("x", "b", "a")


def test_examples_are_ordered_by_trace_id() -> None:
    built = build_examples([trace(name, "user") for name in ("b", "c", "a")], [])
    assert [example.trace_id for example in built.examples] == ["a", "b", "c"]


def test_traces_without_input_are_counted_with_the_reason() -> None:
    traces = [
        trace("a", "user", "assistant"),
        trace("b", "system", "assistant", "user"),
        trace("c", "system"),
        trace("d", "assistant"),
    ]
    built = build_examples(traces, [])
    assert [example.trace_id for example in built.examples] == ["a"]
    assert built.skipped == (
        Skipped(reason="starts with the assistant", count=2),
        Skipped(reason="has only system steps", count=1),
    )


def test_no_examples_are_refused_with_the_reasons() -> None:
    with pytest.raises(ExamplesError) as caught:
        build_examples([trace("a", "assistant"), trace("b", "system", "assistant")], [])
    assert caught.value.problem == (
        "None of the 2 conversations can be replayed: starts with the assistant (2)."
    )


def test_no_traces_are_refused() -> None:
    with pytest.raises(ExamplesError, match="No conversation was chosen"):
        build_examples([], [])


@pytest.mark.parametrize("count", [1, 19])
def test_nothing_is_held_out_of_fewer_than_twenty(count: int) -> None:
    assert split_heldout(examples(count)[::-1], seed=0) == (tuple(examples(count)), 0)


@pytest.mark.parametrize(("count", "heldout"), [(20, 5), (23, 5), (24, 6), (100, 25)])
def test_a_quarter_is_held_out_at_the_end_and_both_parts_are_ordered(
    count: int, heldout: int
) -> None:
    ordered, held = split_heldout(examples(count), seed=0)
    names = [example.trace_id for example in ordered]
    assert held == heldout
    assert sorted(names) == [example.trace_id for example in examples(count)]
    assert names[:-held] == sorted(names[:-held])
    assert names[-held:] == sorted(names[-held:])


def test_the_seed_decides_which_are_held_out_and_the_order_given_does_not() -> None:
    assert split_heldout(examples(40), seed=3) == split_heldout(examples(40)[::-1], seed=3)
    assert split_heldout(examples(40), seed=3) != split_heldout(examples(40), seed=4)
