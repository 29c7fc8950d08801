"""What was deleted at Stash: told, kept here, and sent again only when that is asked for."""

from collections.abc import Callable

import pytest
from stand_in_stash import Odd
from support.both_sides import BothSides, talk

from stash_mcp.backends.base import AnnotationDraft
from stash_mcp.backends.hybrid import standing
from stash_mcp.server.sync_wording import sync_in_words

Change = Callable[[BothSides], object]


def note(sides: BothSides, trace_id: str, step: int | None = None, **said: object) -> str:
    draft = AnnotationDraft(trace_id=trace_id, step_index=step, **said)
    return sides.backend.annotate(draft).id


def shared(sides: BothSides, count: int, *, comes_from: str = "here") -> None:
    """So many conversations on both sides, each with two comments."""
    rows = [talk(f"t{number}", f"Hello {number}", "Hi") for number in range(count)]
    if comes_from == "here":
        sides.import_here(*rows)
        for row in rows:
            note(sides, str(row["id"]), 1, comment="Say more.")
            note(sides, str(row["id"]), rating=1)
        sides.push()
        return
    for remote_id in sides.import_there(*rows):
        sides.annotate_there(remote_id, 1, comment="Say more.")
        sides.annotate_there(remote_id, rating=1)
    sides.pull()


def delete_there(sides: BothSides, comment: str | None = "Say more.", trace: str = "t0") -> None:
    world = sides.stash.world
    [known] = [
        row.id
        for row in world.annotations.values()
        if row.comment == comment and world.traces[row.trace_id].external_id == trace
    ]
    with sides.client() as client:
        client.delete_annotation(known)


@pytest.mark.parametrize("count", [1, standing.FEW + 2])
@pytest.mark.parametrize("comes_from", ["here", "there"])
@pytest.mark.parametrize("comment", ["Say more.", None])
def test_a_deleted_annotation_is_told_and_kept_and_sent_again_by_force_alone(
    sides: BothSides, count: int, comes_from: str, comment: str | None
) -> None:
    shared(sides, count, comes_from=comes_from)
    there = sides.said_there()
    delete_there(sides, comment)
    sent = sides.writes()
    for report in (sides.push(dry_run=True), sides.pull(), sides.push(), sides.push()):
        assert (report.annotations_gone, report.annotations.unchanged) == (1, 2 * count - 1)
        assert "Deleted at Stash since they were there: 1 annotation" in str(sync_in_words(report))
    assert sides.writes() == sent
    assert len(sides.notes_here("t0")) == 2
    would = sides.push(force=True, dry_run=True)
    assert (would.annotations.new, would.annotations_gone, sides.writes()) == (1, 0, sent)
    forced = sides.push(force=True)
    assert (forced.annotations.new, forced.annotations_gone) == (1, 0)
    assert sides.said_there() == there
    last = sides.push()
    assert (last.annotations.unchanged, last.annotations_gone) == (2 * count, 0)
    assert sides.pull().annotations.new == 0


def test_a_comment_deleted_on_purpose_does_not_come_back_with_replaced_steps(
    sides: BothSides,
) -> None:
    shared(sides, 1)
    delete_there(sides, None)
    sides.push()
    sides.import_here(talk("t0", "Hello", "Hi", "Thanks"))
    note(sides, "t0", 2, comment="New.")
    with sides.client() as client:
        [remote] = sides.stash.world.traces
        for row in client.get_trace(remote).annotations:
            client.delete_annotation(row.id)
    report = sides.push()
    assert (report.traces.changed, report.annotations.new, report.annotations_gone) == (1, 1, 1)
    assert sides.said_there() == [("t0", None, "New.")]


def test_an_unchanged_push_costs_the_same_however_many_conversations(sides: BothSides) -> None:
    costs = []
    for count in (standing.FEW + 1, 3 * standing.FEW):
        shared(sides, count)
        sides.push()
        before = len(sides.stash.asked)
        sides.push()
        costs.append([asked.path for asked in sides.stash.asked[before:]])
    assert costs[0] == costs[1] == ["/api/v1/rm/traces", "/api/v1/rm/export/annotations"]


def test_what_is_known_to_be_gone_is_not_looked_for_again(sides: BothSides) -> None:
    shared(sides, standing.FEW + 2)
    delete_there(sides)
    sides.push()
    before = len(sides.stash.asked)
    assert sides.push().annotations_gone == 1
    assert len(sides.stash.asked) - before == 2


def test_an_export_that_breaks_off_makes_nothing_gone(sides: BothSides) -> None:
    shared(sides, standing.FEW + 2)
    sides.stash.odd.extend([None, Odd(cut=200)])
    report = sides.push()
    assert (report.annotations_gone, report.annotations.unchanged) == (0, 2 * standing.FEW + 4)


def test_an_annotation_that_cannot_be_read_is_not_taken_for_deleted(sides: BothSides) -> None:
    shared(sides, standing.FEW + 2)
    next(iter(sides.stash.world.annotations.values())).rating = 7
    assert sides.push().annotations_gone == 0


@pytest.mark.parametrize("force", [False, True])
def test_deleted_conversations_are_told_by_a_pull_and_stay_here(
    sides: BothSides, force: bool
) -> None:
    shared(sides, 2)
    with sides.client() as client:
        client.delete_trace(next(iter(sides.stash.world.traces)))
    report = sides.pull(force=force)
    assert (report.gone, report.traces.unchanged) == (1, 1)
    assert "1 conversation; they stay here" in str(sync_in_words(report))
    assert len(sides.notes_here("t0")) == 2


def test_comments_that_stash_dropped_with_old_steps_are_not_lost_here(sides: BothSides) -> None:
    shared(sides, 1)
    sides.import_there(talk("t0", "Hello 0", "Hi", "Thanks"))
    [held] = sides.pull().conflicts
    assert "comments here that Stash does not have" in held.why
    assert len(sides.notes_here("t0")) == 2
    assert sides.pull(force=True).traces.changed == 1
    assert [row.rating for row in sides.notes_here("t0")] == [1]


def test_comments_that_were_sent_again_after_old_steps_come_with_the_new_ones(
    sides: BothSides,
) -> None:
    shared(sides, 1)
    [remote] = sides.import_there(talk("t0", "Hello 0", "Hi", "Thanks"))
    sides.annotate_there(remote, 1, comment="Say more.")
    report = sides.pull()
    assert (report.traces.changed, report.conflicts) == (1, ())
    assert sorted(str(row.comment) for row in sides.notes_here("t0")) == ["None", "Say more."]


@pytest.mark.parametrize(
    "change", [{"comment": "Reworded there."}, {"label_error": True, "label_error_note": "no"}]
)
def test_what_was_said_there_meanwhile_is_not_lost_to_steps_that_changed_here(
    sides: BothSides, change: dict[str, object]
) -> None:
    sides.import_here(talk("a", "Hello", "Hi"))
    sides.push()
    [remote] = sides.stash.world.traces
    theirs = sides.annotate_there(remote, 1, comment="Theirs.")
    sides.pull()
    for name, value in change.items():
        setattr(sides.stash.world.annotations[theirs], name, value)
    sides.import_here(talk("a", "Hello", "Hi", "Thanks"))
    [held] = sides.push().conflicts
    assert "comments on its steps that are not here" in held.why
