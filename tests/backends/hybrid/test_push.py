"""From a real library to a stand-in of Stash over real HTTP."""

import pytest
from stand_in_stash import Odd
from support.both_sides import BothSides, talk
from support.stash_calls import client_of

from stash_mcp.backends.base import AnnotationDraft
from stash_mcp.backends.hybrid import pushing
from stash_mcp.backends.hybrid.remote import FEW
from stash_mcp.errors import LibraryBusyError, StashError, StashKeyError
from stash_mcp.models import Quote
from stash_mcp.storage.files import try_lock

ALL_SAID = [("a", None, "Say more."), ("b", 1, None), ("b", None, "Wrong.")]


def note(sides: BothSides, trace_id: str, step: int | None = None, **said: object) -> str:
    draft = AnnotationDraft(trace_id=trace_id, step_index=step, **said)
    return sides.backend.annotate(draft).id


def furnish(sides: BothSides) -> None:
    """What makes Stash hold ALL_SAID, the last of it flagged."""
    sides.import_here(talk("a"), talk("b"))
    note(sides, "a", 1, comment="Say more.")
    note(sides, "b", rating=1)
    flagged = note(sides, "b", 0, comment="Wrong.")
    sides.backend.flag_annotation(flagged, None, flagged=True)


def test_conversations_and_annotations_get_there_as_they_are(sides: BothSides) -> None:
    sides.import_here(talk("a", "Hello", "Hi"), talk("b"))
    note(sides, "a", rating=1)
    note(sides, "a", 1, comment="Say more.", rating=-1, quote=Quote(text="Hi"))
    report = sides.push()
    assert (report.traces.new, report.annotations.new) == (2, 2)
    assert sides.texts_there("a") == [["Hello", "Hi"]]
    assert sides.said_there() == [("a", -1, "Say more."), ("a", 1, None)]
    [on_step] = [row for row in sides.stash.world.annotations.values() if row.step_id]
    assert on_step.quote == {"text": "Hi", "prefix": "", "suffix": ""}


def test_a_second_push_sends_nothing(sides: BothSides) -> None:
    sides.import_here(talk("a"))
    note(sides, "a", 1, comment="Say more.")
    sides.push()
    sent = sides.writes()
    report = sides.push()
    assert (report.traces.unchanged, report.annotations.unchanged) == (1, 1)
    assert sides.writes() == sent


def test_only_a_new_comment_is_sent_later(sides: BothSides) -> None:
    sides.import_here(talk("a"))
    sides.push()
    note(sides, "a", 0, comment="Why?")
    report = sides.push()
    assert (report.traces.unchanged, report.annotations.new) == (1, 1)
    assert sides.said_there() == [("a", None, "Why?")]


def test_a_flag_set_or_taken_back_here_follows(sides: BothSides) -> None:
    sides.import_here(talk("a"))
    flagged = note(sides, "a", comment="Wrong.")
    sides.backend.flag_annotation(flagged, "a mistake", flagged=True)
    sides.push()
    [there] = sides.stash.world.annotations.values()
    assert (there.label_error, there.label_error_note) == (True, "a mistake")
    sides.backend.flag_annotation(flagged, None, flagged=False)
    assert sides.push().annotations.changed == 1
    assert (there.label_error, there.label_error_note) == (False, None)


def test_replaced_steps_get_their_comments_again(sides: BothSides) -> None:
    """Stash drops annotations on steps that an import replaces, on equal steps too."""
    sides.import_here(talk("a", "Hello", "Hi"))
    note(sides, "a", comment="On the whole.")
    sides.push()
    sides.import_here(talk("a", "Hello", "Hi", "Thanks", "You are welcome"))
    note(sides, "a", 3, comment="On the new step.")
    report = sides.push()
    assert (report.traces.changed, report.annotations.new) == (1, 1)
    assert sides.said_there() == [("a", None, "On the new step."), ("a", None, "On the whole.")]


def test_comments_at_stash_are_not_lost_to_steps_that_changed_here(sides: BothSides) -> None:
    sides.import_here(talk("a"))
    sides.push()
    [remote] = sides.stash.world.traces
    sides.annotate_there(remote, 1, comment="Theirs.")
    sides.import_here(talk("a", "Hello", "Changed here."))
    [held] = sides.push().conflicts
    assert "comments on its steps that are not here" in held.why
    assert sides.said_there() == [("a", None, "Theirs.")]
    [held] = sides.pull().conflicts
    assert "new comments on the old ones" in held.why
    assert sides.push(force=True).traces.changed == 1
    assert sides.texts_there("a") == [["Hello", "Changed here."]]


def test_what_changed_on_both_sides_stays_on_both(sides: BothSides) -> None:
    sides.import_here(talk("a"))
    sides.push()
    sides.import_there(talk("a", "Hello", "Changed there."))
    sides.import_here(talk("a", "Hello", "Changed here."))
    note(sides, "a", 1, comment="Mine.")
    [held] = sides.push().conflicts
    assert held.why == "it changed here and at Stash"
    assert sides.texts_there("a") == [["Hello", "Changed there."]]
    forced = sides.push(force=True)
    assert (forced.traces.changed, forced.annotations.new) == (1, 1)
    assert sides.texts_there("a") == [["Hello", "Changed here."]]


def test_another_conversation_with_that_id_at_stash_is_a_conflict(sides: BothSides) -> None:
    sides.import_there(talk("a", "Theirs", "Theirs."))
    sides.import_here(talk("a", "Mine", "Mine."))
    [held] = sides.push().conflicts
    assert held.why == "Stash has another conversation of this id"
    assert sides.texts_there("a") == [["Theirs", "Theirs."]]


def test_a_comment_on_a_step_that_changed_there_is_held(sides: BothSides) -> None:
    sides.import_here(talk("a"))
    sides.push()
    sides.import_there(talk("a", "Hello", "Changed there."))
    note(sides, "a", 1, comment="On the old step.")
    [held] = sides.push().conflicts
    assert "changed at Stash" in held.why
    assert sides.said_there() == []


def test_what_came_from_stash_is_not_sent_back_and_its_comments_find_it(sides: BothSides) -> None:
    sides.import_there(talk("a"), talk(None, "Nameless", "Yes."))
    sides.pull()
    [nameless] = [t.id for t in sides.stash.world.traces.values() if t.external_id is None]
    note(sides, nameless, rating=1)
    writes = len(sides.writes())
    report = sides.push()
    assert (report.traces.unchanged, report.annotations.new) == (2, 1)
    assert sides.writes()[writes:] == [f"/api/v1/rm/traces/{nameless}/annotations"]
    sides.import_here(talk(nameless, "Nameless", "No."))
    [held] = sides.push().conflicts
    assert "by no id" in held.why


def test_what_was_deleted_at_stash_is_not_sent_again_unless_forced(sides: BothSides) -> None:
    sides.import_here(talk("a"))
    note(sides, "a", rating=1)
    sides.push()
    with sides.client() as client:
        client.delete_trace(next(iter(sides.stash.world.traces)))
    assert sides.push().gone == 1
    assert sides.texts_there("a") == []
    forced = sides.push(force=True)
    assert (forced.traces.new, forced.annotations.new, forced.gone) == (1, 1, 0)


def test_an_equal_comment_that_is_there_already_is_not_sent(sides: BothSides) -> None:
    [remote] = sides.import_there(talk("a"))
    sides.annotate_there(remote, 1, comment="Say more.")
    sides.import_here(talk("a"))
    note(sides, "a", 1, comment="Say more.")
    assert sides.push().annotations.new == 0
    assert sides.said_there() == [("a", None, "Say more.")]
    report = sides.pull()
    assert (report.annotations.new, len(sides.notes_here("a"))) == (0, 1)


def test_two_equal_ratings_are_both_sent(sides: BothSides) -> None:
    sides.import_here(talk("a"))
    note(sides, "a", rating=-1, author="ann")
    note(sides, "a", rating=-1, author="ben")
    sides.push()
    assert sides.said_there() == [("a", -1, None)] * 2
    assert sides.pull().annotations.new == 0
    assert len(sides.notes_here("a")) == 2


def test_a_dry_run_counts_and_sends_nothing(sides: BothSides) -> None:
    sides.import_here(talk("a"), talk("b"))
    note(sides, "a", 1, comment="Say more.")
    report = sides.push(dry_run=True)
    assert (report.traces.new, report.annotations.new) == (2, 1)
    assert sides.writes() == []
    assert sides.push().traces.new == 2


def test_a_pattern_sends_what_it_fits(sides: BothSides) -> None:
    sides.import_here(talk("shop-1"), talk("shop-2"), talk("private"))
    assert sides.push("shop-*").traces.new == 2
    assert sides.texts_there("private") == []


def test_requests_are_bounded_in_bytes(sides: BothSides, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pushing, "BATCH_BYTES", 2_000)
    sides.import_here(*(talk(f"t{number}", "x" * 700) for number in range(5)))
    assert sides.push().traces.new == 5
    bodies = [len(asked.body) for asked in sides.stash.asked if asked.method == "POST"]
    assert len(bodies) == 3
    assert max(bodies) < 2_500


def test_one_that_stash_refuses_does_not_hold_up_the_others(
    sides: BothSides, monkeypatch: pytest.MonkeyPatch
) -> None:
    sides.import_here(talk("a"), talk("bad"), talk("c"))
    refused = b'{"detail": "line 2 is not fine"}'
    odd = Odd(status=422, content_type="application/json", body=refused)
    # The list, all three, the first alone, the other two, the second alone, the third.
    sides.stash.odd.extend([None, odd, None, odd, odd, None])
    report = sides.push()
    assert report.traces.new == 2
    [held] = report.refused
    assert (held.trace_id, "line 2 is not fine" in held.why) == ("bad", True)
    assert sides.push().traces.new == 1


@pytest.mark.parametrize("answers", range(1, 8))
def test_a_push_that_ends_anywhere_is_carried_on_by_the_next(
    sides: BothSides, answers: int
) -> None:
    """Every request before has had its effect, and the answer to the last one is lost."""
    furnish(sides)
    lost = Odd(after_effect=True, reset=True)
    sides.stash.odd.extend([None] * answers)
    sides.stash.always = lost
    with pytest.raises(StashError):
        sides.push()
    sides.stash.always = None
    sides.push()
    assert sides.said_there() == ALL_SAID
    assert len(sides.stash.world.traces) == 2
    assert [row.label_error for row in sides.stash.world.annotations.values()].count(True) == 1
    sent = sides.writes()
    assert sides.push().annotations.unchanged == 3
    assert sides.pull().annotations.new == 0
    assert sides.writes() == sent


def test_a_pull_after_a_broken_push_makes_no_second_comment_here(sides: BothSides) -> None:
    sides.import_here(talk("a"))
    note(sides, "a", 1, comment="Say more.")
    sides.stash.odd.extend([None] * 3)
    sides.stash.always = Odd(after_effect=True, reset=True)
    with pytest.raises(StashError):
        sides.push()
    sides.stash.always = None
    assert sides.said_there() == [("a", None, "Say more.")]
    sides.pull()
    assert len(sides.notes_here("a")) == 1
    sides.push()
    assert sides.said_there() == [("a", None, "Say more.")]


def test_many_that_are_at_stash_already_are_compared_by_the_export(sides: BothSides) -> None:
    rows = [talk(f"t{number}") for number in range(FEW + 1)]
    sides.import_there(*rows)
    sides.import_here(*rows)
    writes = sides.writes()
    assert sides.push().traces.unchanged == FEW + 1
    assert sides.writes() == writes
    assert sides.stash.paths("GET").count("/api/v1/rm/export/traces") == 1


def test_a_key_that_only_reads_sends_nothing_and_says_so(sides: BothSides) -> None:
    sides.import_here(talk("a"))
    with (
        client_of(sides.stash, "mc_reader_0123456789abcd") as client,
        pytest.raises(StashKeyError),
    ):
        sides.hybrid(client).push()
    assert sides.stash.world.traces == {}


def test_two_at_once_on_a_library_are_refused(sides: BothSides) -> None:
    with (
        try_lock(sides.stage.settings.home / "sync.lock"),
        pytest.raises(LibraryBusyError, match="Another pull or push"),
    ):
        sides.push()
