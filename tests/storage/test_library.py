"""Traces and annotations in the library: kept, replaced, listed, and shared by processes."""

import json
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import stash_mcp
from stash_mcp.errors import AnnotationError, NotFoundError
from stash_mcp.models import Annotation, Quote, Step, Trace, TraceSummary
from stash_mcp.storage.database import Database
from stash_mcp.storage.library import ImportCounts, Library

NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)


@pytest.fixture
def library(tmp_path: Path) -> Library:
    return Library(Database(tmp_path / "library.db"))


def trace(trace_id: str, *contents: str, **fields: Any) -> Trace:
    steps = [Step(role="user", content=content) for content in contents or ("Hi",)]
    return Trace(id=trace_id, steps=tuple(steps), **fields)


def note(annotation_id: str, trace_id: str, minutes: int = 0, **fields: Any) -> Annotation:
    fields = {"comment": "Hm", "created_at": NOON + timedelta(minutes=minutes), **fields}
    return Annotation(id=annotation_id, trace_id=trace_id, **fields)


def accept(annotation: Annotation, trace: Trace) -> None:
    assert annotation.trace_id == trace.id


def ids_of(library: Library, **filters: Any) -> list[str]:
    page, _ = library.list_traces(limit=100, offset=0, **filters)
    return [summary.id for summary in page]


# --- traces ---


def test_a_trace_comes_back_as_it_was_stored(library: Library) -> None:
    step = Step(
        role="assistant",
        content="Grüße \U0001f600\u2028",
        tool_name="lookup",
        tool_input={"z": [1, 1.0, True, None, 10**300], "a": {"ö": 1e-9}},
        tool_call_id="c1",
        metadata={"is_error": True},
    )
    stored = Trace(
        id="a", title="T", metadata={"k": [1]}, steps=(step, Step(role="tool", content=""))
    )
    library.put_traces([stored])
    assert library.trace("a").model_dump_json() == stored.model_dump_json()


def test_new_replaced_and_unchanged_traces_are_counted(library: Library) -> None:
    library.put_traces([trace("a"), trace("b")])
    counts = library.put_traces([trace("a"), trace("b", "changed"), trace("c")])
    assert counts == ImportCounts(added=1, replaced=1, unchanged=1, annotations_removed=0)


def test_replacing_steps_removes_their_annotations_and_keeps_those_on_the_trace(
    library: Library,
) -> None:
    library.put_traces([trace("a", "one", "two"), trace("b")])
    notes = [note("1", "a"), note("2", "a", step_index=0), note("3", "a", step_index=1)]
    library.add_annotations([*notes, note("4", "b", step_index=0)], accept)
    counts = library.put_traces([trace("a", "one", "new")])
    assert counts.annotations_removed == 2
    assert [annotation.id for annotation in library.annotations(["a", "b"])] == ["1", "4"]
    assert library.trace("a") == trace("a", "one", "new")


def test_importing_the_same_steps_keeps_every_annotation_and_takes_the_new_title(
    library: Library,
) -> None:
    library.put_traces([trace("a", title="old")])
    library.add_annotations([note("1", "a", step_index=0)], accept)
    assert library.put_traces([trace("a", title="new")]).unchanged == 1
    assert [annotation.id for annotation in library.annotations(["a"])] == ["1"]
    assert library.trace("a").title == "new"


@pytest.mark.parametrize("changed", [True, 1.0, "1"])
def test_a_value_that_only_python_takes_for_equal_is_a_change(
    library: Library, changed: Any
) -> None:
    def call(value: Any) -> Trace:
        step = Step(role="assistant", content="", tool_name="f", tool_input={"n": value})
        return Trace(id="a", steps=(step,))

    library.put_traces([call(1)])
    assert library.put_traces([call(changed)]).replaced == 1
    assert repr(library.trace("a").steps[0].tool_input) == repr({"n": changed})


def test_an_import_that_fails_stores_nothing(library: Library) -> None:
    def traces() -> Any:
        yield trace("a")
        raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"):
        library.put_traces(traces())
    assert library.matching_ids(None) == ()


def test_an_unknown_trace_is_named(library: Library) -> None:
    with pytest.raises(NotFoundError, match="no trace 'x'"):
        library.trace("x")
    with pytest.raises(NotFoundError, match="no trace 'x'"):
        list(library.traces(["x"]))


def test_traces_come_once_each_and_ordered_by_id(library: Library) -> None:
    library.put_traces([trace("b"), trace("a")])
    assert [found.id for found in library.traces(["b", "a", "b"])] == ["a", "b"]


def test_patterns_match_as_in_file_names(library: Library) -> None:
    library.put_traces([trace(name) for name in ("b-2", "b-1", "a[1]", "c")])
    assert library.matching_ids(None) == ("a[1]", "b-1", "b-2", "c")
    assert library.matching_ids(["b-*"]) == ("b-1", "b-2")
    assert library.matching_ids(["b-?", "c", "c"]) == ("b-1", "b-2", "c")
    assert library.matching_ids(["a[1]"]) == ("a[1]",)


@pytest.mark.parametrize("pattern", ["x", "x*", ""])
def test_a_pattern_without_a_match_is_named(library: Library, pattern: str) -> None:
    library.put_traces([trace("a")])
    with pytest.raises(NotFoundError):
        library.matching_ids(["a", pattern])


# --- lists ---


def test_a_list_shows_counts_of_unflagged_annotations(library: Library) -> None:
    library.put_traces([trace("b", "one", "two", title="T"), trace("a")])
    notes = [
        note("1", "b", rating=1),
        note("2", "b", rating=-1, comment=None, step_index=0),
        note("3", "b", rating=-1, comment=None),
        note("4", "b", rating=1, label_error=True),
    ]
    library.add_annotations(notes, accept)
    page, total = library.list_traces(limit=10, offset=0)
    assert total == 2
    assert page == [
        TraceSummary(id="b", title="T", steps=2, positive=1, negative=2, comments=1),
        TraceSummary(id="a", title=None, steps=1, positive=0, negative=0, comments=0),
    ]


def test_pages_follow_the_order_of_import(library: Library) -> None:
    library.put_traces([trace(name) for name in "dbca"])
    page, total = library.list_traces(limit=2, offset=1)
    assert ([summary.id for summary in page], total) == (["b", "c"], 4)
    assert library.list_traces(limit=2, offset=9) == ([], 4)


@pytest.mark.parametrize("text", ["über", "ÜBER", "Fracht"])
def test_text_is_found_in_either_case_in_id_or_title(library: Library, text: str) -> None:
    library.put_traces([trace("a", title="Überfracht"), trace("b"), trace("ÜberFracht-1")])
    assert ids_of(library, text=text) == ["a", "ÜberFracht-1"]


def test_marks_of_patterns_mean_themselves_in_a_search(library: Library) -> None:
    library.put_traces([trace("a%b"), trace("axb")])
    assert ids_of(library, text="%") == ["a%b"]


def test_commented_traces_can_be_listed_alone_or_left_out(library: Library) -> None:
    library.put_traces([trace("a"), trace("b"), trace("c")])
    library.add_annotations(
        [note("1", "a"), note("2", "b", comment=None, rating=1), note("3", "c", label_error=True)],
        accept,
    )
    assert ids_of(library, commented=True) == ["a"]
    assert ids_of(library, commented=False) == ["b", "c"]


# --- annotations ---


def test_an_annotation_comes_back_as_it_was_stored(library: Library) -> None:
    library.put_traces([trace("a")])
    full = note(
        "1",
        "a",
        step_index=0,
        rating=-1,
        quote=Quote(text="Hi", prefix="\n"),
        label_error=True,
        label_error_note="meant +1",
        author="ana",
        created_at=NOON + timedelta(microseconds=1),
    )
    assert library.add_annotations([full], accept) == 1
    assert library.annotations(["a"]) == [full]


def test_a_known_annotation_is_left_as_it_is(library: Library) -> None:
    library.put_traces([trace("a")])
    library.add_annotations([note("1", "a", comment="first")], accept)
    assert library.add_annotations([note("1", "a", comment="x"), note("2", "a")], accept) == 1
    assert [annotation.comment for annotation in library.annotations(["a"])] == ["first", "Hm"]


def test_annotations_come_oldest_first_and_in_order_of_storing_within_a_moment(
    library: Library,
) -> None:
    library.put_traces([trace("a"), trace("b")])
    notes = [note("1", "a", 5), note("2", "b", 1), note("3", "a", 1), note("4", "b", 0)]
    library.add_annotations(notes, accept)
    assert [found.id for found in library.annotations(["a", "b"])] == ["4", "2", "3", "1"]


def test_more_ids_than_one_query_takes_can_be_asked_for(library: Library) -> None:
    names = [f"t{n:04}" for n in range(1200)]
    library.put_traces([trace(name) for name in names])
    library.add_annotations([note(name, name) for name in names], accept)
    assert len(library.annotations(names)) == 1200


def test_one_annotation_that_does_not_fit_stores_none(library: Library) -> None:
    def refuse_second(annotation: Annotation, trace: Trace) -> None:
        if annotation.id == "2":
            raise AnnotationError("It does not fit.", "Change it.")

    library.put_traces([trace("a")])
    with pytest.raises(AnnotationError):
        library.add_annotations([note("1", "a"), note("2", "a")], refuse_second)
    with pytest.raises(NotFoundError, match="no trace 'x'"):
        library.add_annotations([note("1", "a"), note("3", "x")], accept)
    assert library.annotations(["a"]) == []


def test_a_label_is_flagged_and_taken_back(library: Library) -> None:
    library.put_traces([trace("a")])
    library.add_annotations([note("1", "a")], accept)
    flagged = library.flag_annotation("1", "meant +1", flagged=True)
    assert (flagged.label_error, flagged.label_error_note) == (True, "meant +1")
    assert library.annotations(["a"]) == [flagged]
    restored = library.flag_annotation("1", "ignored", flagged=False)
    assert (restored.label_error, restored.label_error_note) == (False, None)


def test_an_unknown_annotation_is_named(library: Library) -> None:
    with pytest.raises(NotFoundError, match="no annotation 'x'"):
        library.flag_annotation("x", None, flagged=True)


# --- several processes ---

_WRITER = """
import sys
from datetime import UTC, datetime
from pathlib import Path
from stash_mcp.models import Annotation, Step, Trace
from stash_mcp.storage.database import Database
from stash_mcp.storage.library import Library

path, me, rounds = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
sys.stdin.readline()
library = Library(Database(path))
added = 0
for number in range(rounds):
    shared, own = f"shared-{number}", f"{me}-{number}"
    steps = (Step(role="user", content="Hi"),)
    added += library.put_traces([Trace(id=name, steps=steps) for name in (shared, own)]).added
    added += library.put_traces([Trace(id="contested", steps=steps * (number + 1))]).added
    library.add_annotations(
        [
            Annotation(
                id=f"{me}-{number}-{name}", trace_id=name, rating=1,
                created_at=datetime(2026, 1, 1, tzinfo=UTC),
            )
            for name in (shared, own)
        ],
        lambda annotation, trace: None,
    )
    library.list_traces(limit=5, offset=0)
sys.stdout.write(str(added))
"""


def test_several_processes_write_at_once_and_nothing_is_lost(tmp_path: Path) -> None:
    """They also make the library: none exists when they start."""
    path, rounds, names = tmp_path / "home" / "library.db", 15, ["p0", "p1", "p2", "p3"]
    root = Path(stash_mcp.__file__).parents[1]
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", _WRITER, str(path), name, str(rounds)],
            cwd=root,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for name in names
    ]
    for writer in writers:
        assert writer.stdin is not None
        writer.stdin.write("go\n")
        writer.stdin.flush()
    outputs = [writer.communicate(timeout=100) for writer in writers]
    assert [error for _, error in outputs] == [""] * len(names)

    library = Library(Database(path))
    own = [f"{name}-{number}" for name in names for number in range(rounds)]
    shared = [f"shared-{number}" for number in range(rounds)]
    assert library.matching_ids(None) == tuple(sorted(["contested", *own, *shared]))
    # Each trace was new to exactly one of them.
    assert sum(int(output) for output, _ in outputs) == len(own) + len(shared) + 1
    found = library.annotations([*own, *shared])
    assert len(found) == len({annotation.id for annotation in found}) == 2 * len(own)
    with Database(path).read() as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone()[0] == "ok"


def test_the_library_keeps_json_that_other_programs_can_read(tmp_path: Path) -> None:
    database = Database(tmp_path / "library.db")
    step = Step(role="assistant", content="", tool_name="f", tool_input={"ö": 1.5})
    Library(database).put_traces([Trace(id="a", steps=(step,))])
    with database.read() as connection:
        stored = connection.execute("SELECT tool_input FROM steps").fetchone()[0]
    assert json.loads(stored) == {"ö": 1.5}
