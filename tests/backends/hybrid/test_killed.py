"""Killed at each write to the library in turn; the next round ends as if nothing had happened."""

import contextlib
from collections.abc import Iterator

import pytest
from support.both_sides import BothSides, talk

from stash_mcp.backends.base import AnnotationDraft
from stash_mcp.storage.database import Database


class Killed(BaseException):
    pass


@contextlib.contextmanager
def killed_at(write: int, monkeypatch: pytest.MonkeyPatch, *, after: bool) -> Iterator[list[int]]:
    """Raises at the write of that number, from 1: before it begins, or after it is committed."""
    count = [0]
    real = Database.write

    @contextlib.contextmanager
    def counting(database: Database) -> Iterator[object]:
        count[0] += 1
        if count[0] == write and not after:
            raise Killed
        with real(database) as connection:
            yield connection
        if count[0] == write:
            raise Killed

    with monkeypatch.context() as patched:
        patched.setattr(Database, "write", counting)
        yield count


# After a write differs from before the next one where something is sent between the two.
@pytest.mark.parametrize(
    ("write", "after"),
    [*((number, False) for number in range(1, 11)), *((number, True) for number in (1, 4, 7, 9))],
)
def test_a_push_sends_everything_once(
    sides: BothSides, monkeypatch: pytest.MonkeyPatch, write: int, after: bool
) -> None:
    sides.import_here(talk("a", "Hello", "Hi"), talk("b"))
    sides.push()
    sides.annotate_there(next(iter(sides.stash.world.traces)), comment="Theirs.")
    sides.import_here(talk("a", "Hello", "Hi", "Thanks"), talk("c"))
    for trace_id, step in (("a", 2), ("b", 1), ("c", None)):
        draft = AnnotationDraft(trace_id=trace_id, step_index=step, comment=f"On {trace_id}.")
        note = sides.backend.annotate(draft)
    sides.backend.flag_annotation(note.id, "no", flagged=True)
    with killed_at(write, monkeypatch, after=after) as count, contextlib.suppress(Killed):
        sides.push()
    sides.push()
    assert count[0] == write
    said = sorted(comment for _, _, comment in sides.said_there() if comment)
    assert said == ["On a.", "On b.", "On c.", "Theirs."]
    assert [row.label_error for row in sides.stash.world.annotations.values()].count(True) == 1
    assert sides.texts_there("a") == [["Hello", "Hi", "Thanks"]]
    assert len(sides.stash.world.traces) == 3
    sent = sides.writes()
    assert sides.push().conflicts == ()
    assert sides.writes() == sent
    assert sides.pull().annotations.new == 1


@pytest.mark.parametrize("write", range(1, 7))
def test_a_pull_takes_everything_once(
    sides: BothSides, monkeypatch: pytest.MonkeyPatch, write: int
) -> None:
    first, second = sides.import_there(talk("a"), talk("b"))
    sides.annotate_there(second, comment="On b.")
    sides.pull()
    sides.import_there(talk("a", "Hello", "Changed."), talk("c"))
    sides.annotate_there(first, 1, comment="On a.")
    sides.annotate_there(second, 0, rating=1)
    with killed_at(write, monkeypatch, after=False) as count, contextlib.suppress(Killed):
        sides.pull()
    assert count[0] == write
    sides.pull()
    assert sides.texts_here("a") == ["Hello", "Changed."]
    assert [note.comment for note in sides.notes_here("a")] == ["On a."]
    assert len(sides.notes_here("b")) == 2
    report = sides.pull()
    assert (report.traces.unchanged, report.annotations.unchanged) == (3, 3)
    assert report.conflicts == ()
    assert sides.push().annotations.new == 0
