"""From a stand-in of Stash over real HTTP into a real library."""

import pytest
from support.both_sides import BothSides, talk

from stash_mcp.backends.base import AnnotationDraft
from stash_mcp.backends.hybrid.remote import FEW
from stash_mcp.errors import NotFoundError
from stash_mcp.stash.sent import AnnotationChange


def test_conversations_and_annotations_come_here_as_they_are(sides: BothSides) -> None:
    [remote] = sides.import_there(talk("a", "Hello", "Hi"))
    quote = {"text": "Hi", "prefix": "", "suffix": ""}
    sides.annotate_there(remote, rating=1)
    sides.annotate_there(remote, 1, comment="Say more.", rating=-1, quote=quote)
    report = sides.pull()
    assert (report.traces.new, report.annotations.new) == (1, 2)
    assert sides.texts_here("a") == ["Hello", "Hi"]
    whole, step = sorted(sides.notes_here("a"), key=lambda note: note.step_index or -1)
    assert (whole.step_index, whole.rating, whole.author) == (None, 1, "ada")
    assert (step.step_index, step.comment, step.quote.text) == (1, "Say more.", "Hi")


def test_a_second_pull_changes_nothing(sides: BothSides) -> None:
    [remote] = sides.import_there(talk("a"))
    sides.annotate_there(remote, 1, comment="Say more.")
    sides.pull()
    before = sides.backend.get_trace("a")
    report = sides.pull()
    assert (report.traces.new, report.traces.changed, report.traces.unchanged) == (0, 0, 1)
    assert (report.annotations.new, report.annotations.unchanged) == (0, 1)
    assert sides.backend.get_trace("a") == before


def test_only_what_changed_at_stash_changes_here(sides: BothSides) -> None:
    first, second = sides.import_there(talk("a"), talk("b"))
    said = sides.annotate_there(first, comment="Be kind.")
    sides.pull()
    sides.import_there(talk("b", "Hello", "A new answer."))
    sides.annotate_there(second, rating=1)
    with sides.client() as client:
        client.change_annotation(said, AnnotationChange(comment="Be kinder.", label_error=True))
    report = sides.pull()
    assert (report.traces.changed, report.traces.unchanged) == (1, 1)
    assert (report.annotations.new, report.annotations.changed) == (1, 1)
    assert sides.texts_here("b")[1] == "A new answer."
    [note] = sides.notes_here("a")
    assert (note.comment, note.label_error) == ("Be kinder.", True)


def test_one_without_an_id_at_stash_has_stashs_own_here(sides: BothSides) -> None:
    [remote] = sides.import_there(talk(None))
    sides.annotate_there(remote, rating=-1)
    assert sides.pull().traces.new == 1
    assert [note.rating for note in sides.notes_here(remote)] == [-1]
    assert sides.pull().traces.unchanged == 1


def test_a_pattern_takes_what_it_fits_by_either_id(sides: BothSides) -> None:
    shop, _, other = sides.import_there(talk("shop-1"), talk("shop-2"), talk("other"))
    assert sides.pull("shop-*").traces.new == 2
    assert sides.pull(f"stash:{other}").traces.new == 1
    assert sides.pull(shop).traces.unchanged == 1
    with pytest.raises(NotFoundError, match="Stash has no trace 'nope-\\*'"):
        sides.pull("nope-*")


def test_what_changed_on_both_sides_stays_on_both(sides: BothSides) -> None:
    [remote] = sides.import_there(talk("a"), talk("b"))[:1]
    sides.pull()
    sides.import_there(talk("a", "Hello", "Changed there."))
    sides.annotate_there(remote, rating=1)
    sides.import_here(talk("a", "Hello", "Changed here."))
    report = sides.pull()
    assert [(held.trace_id, held.why) for held in report.conflicts] == [
        ("a", "it changed here and at Stash")
    ]
    assert sides.texts_here("a")[1] == "Changed here."
    assert sides.notes_here("a") == ()
    forced = sides.pull(force=True)
    assert (forced.conflicts, forced.traces.changed, forced.annotations.new) == ((), 1, 1)
    assert sides.texts_here("a")[1] == "Changed there."


def test_another_conversation_with_the_id_of_one_here_is_a_conflict(sides: BothSides) -> None:
    sides.import_here(talk("a", "Mine", "Mine."))
    sides.import_there(talk("a", "Theirs", "Theirs."))
    assert [held.trace_id for held in sides.pull().conflicts] == ["a"]
    assert sides.texts_here("a")[0] == "Mine"


def test_an_equal_one_that_came_by_a_file_is_recognised(sides: BothSides) -> None:
    sides.import_here(talk("a"))
    sides.import_there(talk("a"))
    report = sides.pull()
    assert (report.traces.unchanged, report.conflicts) == (1, ())


def test_comments_made_here_are_not_lost_to_steps_that_changed_there(sides: BothSides) -> None:
    sides.import_there(talk("a"))
    sides.pull()
    sides.backend.annotate(AnnotationDraft(trace_id="a", step_index=1, comment="Mine."))
    sides.import_there(talk("a", "Hello", "Changed there."))
    [held] = sides.pull().conflicts
    assert "comments here that Stash does not have" in held.why
    assert [note.comment for note in sides.notes_here("a")] == ["Mine."]


def test_a_comment_flagged_here_and_changed_there_is_a_conflict(sides: BothSides) -> None:
    [remote] = sides.import_there(talk("a"))
    said = sides.annotate_there(remote, comment="Be kind.")
    sides.pull()
    [note] = sides.notes_here("a")
    sides.backend.flag_annotation(note.id, "no", flagged=True)
    assert sides.pull().conflicts == ()
    with sides.client() as client:
        client.change_annotation(said, AnnotationChange(comment="Be kinder."))
    [held] = sides.pull().conflicts
    assert held.trace_id == "a"
    [note] = sides.notes_here("a")
    assert (note.comment, note.label_error) == ("Be kind.", True)
    assert sides.pull(force=True).annotations.changed == 1
    [note] = sides.notes_here("a")
    assert (note.comment, note.label_error) == ("Be kinder.", False)


def test_a_dry_run_counts_and_changes_nothing(sides: BothSides) -> None:
    [remote] = sides.import_there(talk("a"))
    sides.annotate_there(remote, rating=1)
    report = sides.pull(dry_run=True)
    assert (report.dry_run, report.traces.new, report.annotations.new) == (True, 1, 1)
    assert sides.backend.list_traces(limit=1, offset=0).total == 0
    assert sides.pull().traces.new == 1


def test_many_come_by_the_export_and_the_nameless_among_them_one_by_one(sides: BothSides) -> None:
    rows = [talk(f"t{number}") for number in range(FEW + 5)]
    remotes = sides.import_there(*rows, talk(None, "Nameless", "Yes."))
    for remote in (remotes[0], remotes[-1]):
        sides.annotate_there(remote, 1, comment="Say more.")
    report = sides.pull()
    assert (report.traces.new, report.annotations.new) == (FEW + 6, 2)
    asked = sides.stash.paths("GET")
    assert asked.count("/api/v1/rm/export/traces") == 1
    assert [path for path in asked if path.endswith(f"/traces/{remotes[1]}")] == []
    assert sides.pull().annotations.unchanged == 2


def test_a_change_of_a_comment_among_many_is_found(sides: BothSides) -> None:
    remotes = sides.import_there(*(talk(f"t{number}") for number in range(FEW + 1)))
    said = sides.annotate_there(remotes[3], 1, comment="Say more.")
    sides.pull()
    with sides.client() as client:
        client.change_annotation(said, AnnotationChange(comment="Say less."))
    assert sides.pull().annotations.changed == 1
    assert [note.comment for note in sides.notes_here("t3")] == ["Say less."]
    assert sides.pull().annotations.changed == 0
