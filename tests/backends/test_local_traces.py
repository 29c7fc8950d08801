"""Conversations and annotations through the local backend."""

from datetime import timedelta
from typing import Any

import pytest
from support.staging import START, Stage, conversation, jsonl

from stash_mcp.backends.base import AnnotationDraft
from stash_mcp.errors import AnnotationError, NotFoundError, StashSkillsError
from stash_mcp.models import Quote


def note(trace_id: str, **fields: Any) -> dict[str, object]:
    return {"trace_id": trace_id, "created_at": START.isoformat(), **fields}


def kept(stage: Stage) -> tuple[list[str], list[str]]:
    return list(stage.backend.export_traces()), list(stage.backend.export_annotations())


def test_an_import_reports_what_it_did(stage: Stage) -> None:
    rows = [conversation("a"), conversation("b")]
    notes = [note("a", step_index=1, rating=1), note("a", comment="On all of it.")]
    first = stage.backend.import_traces(jsonl(rows), annotations=jsonl(notes))
    assert (first.format, first.imported, first.added, first.annotations_added) == (
        "stash",
        2,
        2,
        2,
    )
    assert first.trace_ids == ("a", "b")
    rows[0] = conversation("a", "Where is my order?", "Tell me its number.")
    second = stage.backend.import_traces(jsonl(rows))
    assert (second.added, second.replaced, second.unchanged) == (0, 1, 1)
    assert second.annotations_removed == 1
    [left] = stage.backend.get_trace("a").annotations
    assert left.comment == "On all of it."


def test_annotations_of_an_import_may_be_on_known_and_on_new_conversations(stage: Stage) -> None:
    stage.backend.import_traces(jsonl([conversation("old")]))
    notes = [note("old", rating=1), note("new", step_index=1, rating=-1)]
    report = stage.backend.import_traces(jsonl([conversation("new")]), annotations=jsonl(notes))
    assert report.annotations_added == 2


def test_annotations_are_checked_against_the_steps_that_the_import_brings(stage: Stage) -> None:
    stage.backend.import_traces(jsonl([conversation("a", "Hello.", "Good day.")]))
    longer = conversation("a", "Hello.", "Good day.", "Where is it?", "On its way.")
    report = stage.backend.import_traces(
        jsonl([longer]), annotations=jsonl([note("a", step_index=3, rating=1)])
    )
    assert (report.replaced, report.annotations_added) == (1, 1)
    before = kept(stage)
    with pytest.raises(AnnotationError, match="there are 2 steps"):
        stage.backend.import_traces(
            jsonl([conversation("a", "Hello.", "Good day.")]),
            annotations=jsonl([note("a", step_index=3, rating=-1)]),
        )
    assert kept(stage) == before


@pytest.mark.parametrize(
    "bad",
    [
        note("nobody", rating=1),
        note("new", step_index=7, rating=1),
        note("new", step_index=0, comment="Which?", quote={"text": "not there"}),
        note("new"),
        note("new", rating=3),
    ],
)
def test_conversations_and_annotations_are_stored_all_or_none(
    stage: Stage, bad: dict[str, object]
) -> None:
    stage.backend.import_traces(
        jsonl([conversation("old")]), annotations=jsonl([note("old", step_index=1, rating=1)])
    )
    before = kept(stage)
    rows = [conversation("old", "Changed?", "Changed."), conversation("new")]
    notes = [note("new", rating=1), bad]
    with pytest.raises(StashSkillsError):
        stage.backend.import_traces(jsonl(rows), annotations=jsonl(notes))
    with pytest.raises(StashSkillsError):
        stage.backend.import_annotations(jsonl([note("old", rating=-1), bad]))
    assert kept(stage) == before


def test_importing_the_same_again_changes_nothing(stage: Stage) -> None:
    stage.conversations()
    before = kept(stage)
    stage.conversations()
    assert kept(stage) == before
    exported = "\n".join(before[0]).encode()
    report = stage.backend.import_traces(exported, annotations="\n".join(before[1]).encode())
    assert (report.unchanged, report.annotations_added) == (12, 0)
    assert kept(stage) == before


def undated(*notes: dict[str, object]) -> bytes:
    return jsonl([{key: row[key] for key in row if key != "created_at"} for row in notes])


def test_annotations_without_a_time_get_that_of_their_import_and_keep_their_order(
    stage: Stage,
) -> None:
    stage.conversations(2)
    clean = len(kept(stage)[1])
    said = ["Zebra first.", "Then the ant.", "Zebra first."]
    data = undated(*(note("c-01", step_index=1, comment=comment) for comment in said))
    assert stage.backend.import_annotations(data) == 3
    rows = [row for row in stage.backend.get_trace("c-01").annotations if row.comment in said]
    assert [row.comment for row in rows] == said
    assert all(row.created_at >= START for row in rows)
    before = kept(stage)
    assert len(before[1]) == clean + 3
    stage.now += timedelta(hours=1)
    assert stage.backend.import_annotations(data) == 0
    assert stage.backend.import_annotations("\n".join(before[1]).encode()) == 0
    assert kept(stage) == before
    longer = data + undated(note("c-01", step_index=1, comment="Then the ant."))
    assert stage.backend.import_annotations(longer) == 1


def test_an_undated_annotation_takes_no_time_of_a_dated_one_that_says_the_same(
    stage: Stage,
) -> None:
    stage.conversations(1)
    row = note("c-00", step_index=1, comment="Ask first.")
    earlier = {**row, "created_at": (START - timedelta(days=1)).isoformat()}
    data = undated(row) + jsonl([earlier])
    assert stage.backend.import_annotations(data) == 2
    assert stage.backend.import_annotations(data) == 0


def test_an_error_in_the_annotations_names_that_file(stage: Stage) -> None:
    bad = jsonl([note("c-00", rating=7)])
    with pytest.raises(AnnotationError, match=r"^The annotations: Line 1, `rating`: 7 is not"):
        stage.backend.import_traces(jsonl([conversation("c-00")]), annotations=bad)


def test_an_annotation_is_dated_by_the_clock_and_kept(stage: Stage) -> None:
    stage.conversations(1)
    made = stage.backend.annotate(
        AnnotationDraft(
            trace_id="c-00", step_index=1, rating=-1, comment="No.", quote=Quote(text="number")
        )
    )
    assert made.created_at == START
    assert made in stage.backend.get_trace("c-00").annotations


def test_a_flag_is_set_and_taken_back(stage: Stage) -> None:
    stage.conversations(1)
    [annotation] = stage.backend.get_trace("c-00").annotations
    flagged = stage.backend.flag_annotation(annotation.id, "misread", flagged=True)
    assert (flagged.label_error, flagged.label_error_note) == (True, "misread")
    assert stage.backend.flag_annotation(annotation.id, None, flagged=False) == annotation
    with pytest.raises(NotFoundError, match="no annotation 'a-9'"):
        stage.backend.flag_annotation("a-9", None, flagged=True)
