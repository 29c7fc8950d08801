"""One odd conversation or comment of Stash never stops a pull or a push, and is told by its id."""

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
from stand_in_stash import Odd
from support.both_sides import BothSides, talk
from support.spoiled import HALF, RAW, one, put, spoiled

from stash_mcp.backends.base import AnnotationDraft
from stash_mcp.backends.hybrid import SyncReport
from stash_mcp.backends.hybrid.remote import FEW
from stash_mcp.errors import StashError
from stash_mcp.stash.sent import AnnotationChange

Change = Callable[[Any], Any]


def in_step(**fields: object) -> Change:
    return lambda row: {**row, "steps": [{**row["steps"][0], **fields}, *row["steps"][1:]]}


TRACES: dict[str, Change] = {
    "role": in_step(role="developer"),
    "null content": in_step(content=None),
    "list content": in_step(content=[{"type": "text", "text": "Hi"}]),
    "list input": in_step(tool_input=["a"]),
    "surrogate": in_step(content="\ud83d"),
    "NUL": in_step(content="a\0b"),
    "half byte": in_step(content=HALF),
    "deep": in_step(metadata={"a": f"{RAW}{'[' * 300}{']' * 300}"}),
    "no steps": put(steps=None),
    "empty": put(steps=[]),
}
NOTES: dict[str, Change] = {
    "rating": put(rating=0),
    "list": put(comment=["no"]),
    "surrogate": put(comment="\ud800"),
    "NUL": put(comment="a\0b"),
    "quote": put(quote={"text": None}),
    "naive": put(created_at="2026-01-01T00:00:00"),
    "nothing": put(rating=None, comment=None),
}


@contextlib.contextmanager
def odd_traces(sides: BothSides, remotes: dict[str, Change]) -> Iterator[None]:
    """By their ids there. Their exported lines have the ids that they were imported with."""
    with contextlib.ExitStack() as stack:
        for remote, change in remotes.items():
            external = sides.stash.world.traces[remote].external_id or ""
            stack.enter_context(spoiled(sides.stash, remote, change))
            stack.enter_context(spoiled(sides.stash, "/export/traces", one(external, change)))
        yield


@contextlib.contextmanager
def odd_notes(sides: BothSides, remotes: dict[str, Change]) -> Iterator[None]:
    """All annotations on these conversations."""

    def of_detail(row: Any, change: Change) -> Any:
        return {**row, "annotations": [change(note) for note in row["annotations"]]}

    with contextlib.ExitStack() as stack:
        for remote, change in remotes.items():
            stack.enter_context(spoiled(sides.stash, remote, partial(of_detail, change=change)))
            exported = one(remote, change, "trace_id")
            stack.enter_context(spoiled(sides.stash, "/export/annotations", exported))
        yield


def furnish(sides: BothSides, count: int) -> tuple[str, ...]:
    """One comment on each."""
    remotes = sides.import_there(*(talk(f"t{number}") for number in range(count)))
    for remote in remotes:
        sides.annotate_there(remote, 1, comment="Say more.")
    return remotes


def refused(report: SyncReport) -> list[str]:
    return sorted(held.trace_id for held in report.refused)


COUNTS = pytest.mark.parametrize("count", [20, FEW + 3], ids=["one by one", "by the export"])


@COUNTS
def test_odd_conversations_are_told_and_the_others_come(sides: BothSides, count: int) -> None:
    remotes = furnish(sides, count)
    odd = {remotes[2 * number]: change for number, change in enumerate(TRACES.values())}
    sound = count - len(odd)
    with odd_traces(sides, odd):
        first, second = sides.pull(), sides.pull()
    named = sorted(f"t{2 * number}" for number in range(len(odd)))
    assert (refused(first), first.traces.new, first.annotations.new) == (named, sound, sound)
    assert second.refused == first.refused
    assert (second.traces.new, second.traces.changed, second.traces.unchanged) == (0, 0, sound)
    assert (second.annotations.new, second.annotations.unchanged) == (0, sound)
    assert sides.pull().traces.new == len(odd)
    assert [note.comment for note in sides.notes_here("t2")] == ["Say more."]


@COUNTS
def test_odd_comments_are_told_and_lose_neither_their_conversation_nor_the_others(
    sides: BothSides, count: int
) -> None:
    remotes = furnish(sides, count)
    odd = {remotes[2 * number]: change for number, change in enumerate(NOTES.values())}
    sound = count - len(odd)
    with odd_notes(sides, odd):
        first, second = sides.pull(), sides.pull()
    named = sorted(f"t{2 * number}" for number in range(len(odd)))
    assert (refused(first), first.traces.new, first.annotations.new) == (named, count, sound)
    assert second.refused == first.refused
    assert (second.annotations.new, second.annotations.unchanged) == (0, sound)
    assert sides.pull().annotations.new == len(odd)


@COUNTS
def test_a_comment_that_became_odd_is_neither_gone_nor_sent_again(
    sides: BothSides, count: int
) -> None:
    remotes = furnish(sides, count)
    sides.pull()
    with odd_notes(sides, {remotes[1]: put(rating=7)}):
        pulled, pushed = sides.pull(), sides.push()
        forced = sides.push(force=True)
    assert (refused(pulled), pulled.annotations_gone) == (["t1"], 0)
    assert pulled.annotations.unchanged == count - 1
    assert (pushed.annotations_gone, pushed.annotations.new) == (0, 0)
    assert (forced.annotations_gone, forced.annotations.new) == (0, 0)
    assert [note.comment for note in sides.notes_here("t1")] == ["Say more."]
    assert len(sides.said_there()) == count


@COUNTS
def test_a_sound_comment_beside_an_odd_one_stays_the_one_that_it_was(
    sides: BothSides, count: int
) -> None:
    remotes = furnish(sides, count)
    other = sides.annotate_there(remotes[1], 1, comment="Say less.")
    sides.pull()

    def odd_first(row: Any) -> Any:
        return put(rating=7)(row) if row["comment"] == "Say more." else row

    with odd_notes(sides, {remotes[1]: odd_first}):
        assert (refused(report := sides.pull()), report.annotations.new) == (["t1"], 0)
        with sides.client() as client:
            client.change_annotation(other, AnnotationChange(comment="Say nothing."))
        assert (report := sides.pull()).annotations.changed == 1
        assert (report.annotations.new, report.annotations_gone) == (0, 0)
    said = sorted(note.comment or "" for note in sides.notes_here("t1"))
    assert said == ["Say more.", "Say nothing."]
    assert (sides.pull().annotations.new, sides.push().annotations.new) == (0, 0)


@pytest.mark.parametrize("row", [None, "junk", {"id": 5}, {"title": "x"}])
def test_a_row_of_the_list_without_an_id_is_told(sides: BothSides, row: object) -> None:
    furnish(sides, 4)

    def first_is_odd(page: Any) -> Any:
        return {**page, "traces": [row, *page["traces"][1:]]}

    with spoiled(sides.stash, "/rm/traces", first_is_odd):
        first, second = sides.pull(), sides.pull()
    assert (len(first.refused), first.traces.new) == (1, 3)
    assert (first.refused, second.traces.unchanged) == (second.refused, 3)
    assert sides.pull().traces.new == 1


def test_a_row_of_the_list_that_is_odd_in_what_no_pull_needs_is_read(sides: BothSides) -> None:
    remotes = furnish(sides, FEW + 1)

    def counts(page: Any) -> Any:
        rows = [one(remotes[0], put(step_count=None))(row) for row in page["traces"]]
        return {**page, "traces": rows}

    with spoiled(sides.stash, "/rm/traces", counts):
        report = sides.pull()
    assert (report.traces.new, report.refused) == (FEW + 1, ())


@pytest.mark.parametrize("line", [b'{"id": "t0", "ste', b"\xff", b"[" * 9000, b"x" * 40_000])
def test_an_odd_line_among_many_costs_one_question(sides: BothSides, line: bytes) -> None:
    furnish(sides, FEW + 2)
    given = sides.stash.answer

    def answer(asked: Any) -> Any:
        reply, odd = given(asked)
        if asked.path.endswith("/export/traces"):
            reply = replace(reply, body=line + b"\n" + reply.body.partition(b"\n")[2])
        return reply, odd

    sides.stash.answer = answer  # type: ignore[method-assign]
    with sides.client() as client:
        limits = client.sender.connection.limits
        client.sender.connection.limits = replace(limits, answer_bytes=30_000)
        report = sides.pull()
    assert (report.traces.new, report.refused) == (FEW + 2, ())
    assert report.annotations.new == FEW + 2


def test_an_export_that_breaks_off_is_begun_again(sides: BothSides) -> None:
    furnish(sides, FEW + 2)
    sides.stash.odd.extend([None, Odd(cut=3000)])
    assert sides.pull().traces.new == FEW + 2
    assert sides.stash.paths("GET").count("/api/v1/rm/export/traces") == 2


def test_what_is_larger_than_an_answer_may_be_is_told(sides: BothSides) -> None:
    sides.import_there(talk("a"), talk("b", "Hello", "x" * 20_000))
    with sides.client() as client:
        limits = client.sender.connection.limits
        client.sender.connection.limits = replace(limits, answer_bytes=10_000)
        report = sides.pull()
    [held] = report.refused
    assert (held.trace_id, report.traces.new) == ("b", 1)
    assert "larger than 10,000 bytes" in held.why


def test_out_of_reach_is_still_an_error(sides: BothSides) -> None:
    furnish(sides, 2)
    sides.stash.odd.extend([None, *[Odd(reset=True)] * 9])
    with pytest.raises(StashError):
        sides.pull()


# --- pushes ---


@COUNTS
def test_nothing_is_sent_over_an_odd_conversation(sides: BothSides, count: int) -> None:
    remotes = furnish(sides, count)
    sides.pull()
    sides.import_here(*(talk(f"t{number}", "Hello", "Changed.") for number in range(count)))
    odd = dict(zip(remotes, (TRACES[name] for name in ("role", "half byte", "deep")), strict=False))
    with odd_traces(sides, odd):
        report = sides.push(force=True)
    assert refused(report) == ["t0", "t1", "t2"]
    assert all("nothing is sent over it" in held.why for held in report.refused)
    assert report.traces.changed == count - 3
    assert sides.texts_there("t2") == [["Where is my parcel?", "On its way."]]


def test_nothing_is_sent_over_a_conversation_whose_row_is_odd(sides: BothSides) -> None:
    sides.import_there(talk("a"), talk("b"))
    sides.import_here(talk("a", "Mine", "Mine."), talk("c"))

    def odd_a(page: Any) -> Any:
        return {**page, "traces": [one("a", put(id=5), "external_id")(r) for r in page["traces"]]}

    with spoiled(sides.stash, "/rm/traces", odd_a):
        for force in (False, True):
            report = sides.push(force=force)
            assert refused(report) == ["a"]
    assert sides.texts_there("a") == [["Where is my parcel?", "On its way."]]
    assert len(sides.texts_there("c")) == 1


def test_one_whose_row_lost_its_id_is_neither_gone_nor_sent_again(sides: BothSides) -> None:
    furnish(sides, 3)
    sides.pull()

    def headless(page: Any) -> Any:
        return {**page, "traces": [None, *page["traces"][1:]]}

    with spoiled(sides.stash, "/rm/traces", headless):
        pulled, pushed, forced = sides.pull(), sides.push(), sides.push(force=True)
    assert (pulled.gone, pushed.gone, forced.traces.new) == (0, 0, 0)
    assert (refused(pushed), refused(forced)) == (["t2"], ["t2"])
    assert len(sides.said_there()) == 3


def test_steps_with_an_odd_comment_on_them_are_not_replaced(sides: BothSides) -> None:
    remotes = furnish(sides, 2)
    sides.pull()
    sides.import_here(talk("t1", "Hello", "Changed here."))
    with odd_notes(sides, {remotes[1]: put(rating=0)}):
        [held] = sides.push().conflicts
    assert held.trace_id == "t1"
    assert len(sides.said_there()) == 2


# --- several of one id ---


def twins(sides: BothSides, count: int = 0) -> tuple[str, str]:
    """Two conversations at Stash that say different things under the id `a`."""
    first, second = sides.import_there(
        talk("a", "First", "One."),
        talk("b", "Second", "Two."),
        *(talk(f"t{number}") for number in range(count)),
    )[:2]
    world = sides.stash.world
    world.traces[second] = replace(world.traces[second], external_id="a")
    return first, second


@pytest.mark.parametrize("count", [0, FEW])
def test_two_of_one_id_are_two_here_at_every_pull(sides: BothSides, count: int) -> None:
    _, second = twins(sides, count)
    sides.annotate_there(second, 1, comment="Of the second.")
    for number in range(3):
        report = sides.pull()
        assert report.traces.new == (0 if number else count + 2)
        assert (report.traces.changed, report.conflicts, report.refused) == (0, (), ())
    assert sides.texts_here("a") == ["First", "One."]
    assert sides.texts_here(second) == ["Second", "Two."]
    assert [note.comment for note in sides.notes_here(second)] == ["Of the second."]
    assert sides.notes_here("a") == ()
    assert sides.pull(second).traces.unchanged == 1


def test_a_later_one_of_an_id_does_not_take_the_place_of_the_first(sides: BothSides) -> None:
    second, first = twins(sides)
    with sides.client() as client:
        given = sides.stash.world.traces.pop(second)
        sides.pull()
        sides.stash.world.traces[second] = given
        assert client.list_traces().total == 2
    assert sides.pull().traces.new == 1
    assert sides.texts_here("a") == ["Second", "Two."]
    assert sides.texts_here(second) == ["First", "One."]
    assert first != second


def test_a_push_does_not_mix_up_two_of_one_id(sides: BothSides) -> None:
    first, second = twins(sides)
    sides.pull()
    draft = AnnotationDraft(trace_id=second, step_index=1, comment="Mine.")
    sides.backend.annotate(draft)
    assert (sides.push().annotations.new, sides.push().traces.unchanged) == (1, 2)
    [note] = sides.stash.world.annotations.values()
    assert note.trace_id == second
    sides.import_here(talk("a", "First", "Changed here."), talk(second, "Second", "Changed."))
    for force in (False, True):
        report = sides.push(force=force)
        assert {held.trace_id for held in report.conflicts} == {"a", second}
    assert sorted(sides.texts_there("a")) == [["First", "One."], ["Second", "Two."]]
    assert first in sides.stash.world.traces
