"""Traces and annotations in the library.

Covered: storing, reading and listing. Not covered: whether an annotation makes sense for its
trace (the caller passes that check in, so that it runs inside the same transaction).
"""

import json
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from stash_mcp.errors import NotFoundError
from stash_mcp.models import Annotation, Quote, Step, Trace, TraceSummary
from stash_mcp.storage.database import Database

Check = Callable[[Annotation, Trace], None]

# SQLite's limit of bound variables is 32,766 on the releases that Python ships.
_IDS_PER_QUERY = 500


@dataclass(frozen=True)
class ImportCounts:
    """What storing traces did. `unchanged`: known, with the very steps that were given."""

    added: int
    replaced: int
    unchanged: int
    annotations_removed: int


class Library:
    def __init__(self, database: Database) -> None:
        self._database = database

    # --- traces ---

    def put_traces(self, traces: Iterable[Trace]) -> ImportCounts:
        """Store all or none. A known id gets the new steps and loses the annotations on its old
        steps; annotations on the whole trace stay. Steps that did not change keep theirs.
        """
        with self._database.write() as connection:
            return _put_traces(connection, traces)

    def put_annotated_traces(
        self, traces: Iterable[Trace], annotations: Sequence[Annotation], check: Check
    ) -> tuple[ImportCounts, int]:
        """`put_traces` and then `add_annotations`, on these or known traces: all or none."""
        with self._database.write() as connection:
            counts = _put_traces(connection, traces)
            return counts, _add_annotations(connection, annotations, check)

    def trace(self, trace_id: str) -> Trace:
        with self._database.read() as connection:
            found = _read_trace(connection, trace_id)
        if found is None:
            raise _unknown_trace(trace_id)
        return found

    def traces(self, trace_ids: Sequence[str]) -> Iterator[Trace]:
        """The traces with these ids, one at a time, ordered by id; unknown ids raise."""
        with self._database.read() as connection:
            for trace_id in sorted(set(trace_ids)):
                found = _read_trace(connection, trace_id)
                if found is None:
                    raise _unknown_trace(trace_id)
                yield found

    def matching_ids(self, patterns: Sequence[str] | None) -> tuple[str, ...]:
        """Ids of the traces that fit, ordered. `*`, `?` and `[...]` in a pattern match as in file
        names; None means every trace. An exact id that is unknown, or a pattern without a match,
        raises.
        """
        with self._database.read() as connection:
            if patterns is None:
                rows = connection.execute("SELECT id FROM traces ORDER BY id").fetchall()
                return tuple(row["id"] for row in rows)
            found: set[str] = set()
            for pattern in patterns:
                rows = connection.execute(
                    "SELECT id FROM traces WHERE id = ? OR id GLOB ?", (pattern, pattern)
                ).fetchall()
                if not rows:
                    raise _unknown_trace(pattern)
                found.update(row["id"] for row in rows)
        return tuple(sorted(found))

    def list_traces(
        self, *, limit: int, offset: int, text: str | None = None, commented: bool | None = None
    ) -> tuple[list[TraceSummary], int]:
        """One page in order of import, and how many there are in all.

        text: keep those with it in their id or title, in either case. commented: with or without
        an unflagged comment.
        """
        where: list[str] = ["1"]
        values: list[str | int] = []
        if text:
            where.append("(instr(casefold(id), ?) OR instr(casefold(title), ?))")
            values += [text.casefold()] * 2
        if commented is not None:
            where.append("(comments > 0) = ?")
            values.append(int(commented))
        listing = f"""
            WITH listed AS (
                SELECT t.seq, t.id, coalesce(t.title, '') AS title,
                    (SELECT count(*) FROM steps s WHERE s.trace_id = t.id) AS steps,
                    coalesce(sum(a.rating = 1), 0) AS positive,
                    coalesce(sum(a.rating = -1), 0) AS negative,
                    count(a.comment) AS comments
                FROM traces t
                LEFT JOIN annotations a ON a.trace_id = t.id AND NOT a.label_error
                GROUP BY t.seq
            )
            SELECT *, count(*) OVER () AS total FROM listed WHERE {" AND ".join(where)}
        """
        with self._database.read() as connection:
            page = connection.execute(
                f"{listing} ORDER BY seq LIMIT ? OFFSET ?", (*values, limit, offset)
            ).fetchall()
            total = connection.execute(f"SELECT count(*) FROM ({listing})", values).fetchone()[0]
        return [_summary(row) for row in page], total

    # --- annotations ---

    def add_annotations(self, annotations: Sequence[Annotation], check: Check) -> int:
        """Store all or none; one whose id is known already is left as it is. Returns how many
        were new. `check` raises where an annotation does not fit its trace.
        """
        with self._database.write() as connection:
            return _add_annotations(connection, annotations, check)

    def flag_annotation(self, annotation_id: str, note: str | None, *, flagged: bool) -> Annotation:
        """Mark a label as wrong, or take the mark back: it stays visible, out of every training."""
        with self._database.write() as connection:
            connection.execute(
                "UPDATE annotations SET label_error = ?, label_error_note = ? WHERE id = ?",
                (int(flagged), note if flagged else None, annotation_id),
            )
            row = connection.execute(
                "SELECT * FROM annotations WHERE id = ?", (annotation_id,)
            ).fetchone()
        if row is None:
            raise NotFoundError(
                f"There is no annotation '{annotation_id}'.",
                "The annotations of a trace and their ids are shown with the trace.",
            )
        return _annotation(row)

    def rewrite_annotation(self, annotation: Annotation) -> None:
        """Give the annotation with this id what is said and flagged here; it keeps its place."""
        with self._database.write() as connection:
            connection.execute(
                "UPDATE annotations SET rating = ?, comment = ?, label_error = ?, "
                "label_error_note = ? WHERE id = ?",
                (
                    annotation.rating,
                    annotation.comment,
                    int(annotation.label_error),
                    annotation.label_error_note,
                    annotation.id,
                ),
            )

    def annotations(self, trace_ids: Sequence[str]) -> list[Annotation]:
        """All annotations on these traces, flagged ones too, oldest first."""
        found: list[sqlite3.Row] = []
        with self._database.read() as connection:
            for start in range(0, len(trace_ids), _IDS_PER_QUERY):
                some = trace_ids[start : start + _IDS_PER_QUERY]
                marks = ",".join("?" * len(some))
                found += connection.execute(
                    f"SELECT * FROM annotations WHERE trace_id IN ({marks})", tuple(some)
                ).fetchall()
        annotations = [(row["seq"], _annotation(row)) for row in found]
        annotations.sort(key=lambda pair: (pair[1].created_at, pair[0]))
        return [annotation for _, annotation in annotations]


def _unknown_trace(name: str) -> NotFoundError:
    return NotFoundError(
        f"There is no trace '{name}' in the library.",
        "List the traces to see their ids (list_traces, or `stash-skills traces`); those of the "
        "chat formats are made from the content when they are imported.",
    )


def _put_traces(connection: sqlite3.Connection, traces: Iterable[Trace]) -> ImportCounts:
    added = replaced = unchanged = removed = 0
    for trace in traces:
        old = _read_trace(connection, trace.id)
        is_same = old is not None and _has_same_steps(old, trace)
        if old is None:
            added += 1
        elif is_same:
            unchanged += 1
        else:
            replaced += 1
            removed += _delete_steps(connection, trace.id)
        _write_trace(connection, trace, with_steps=not is_same)
    return ImportCounts(added, replaced, unchanged, removed)


def _add_annotations(
    connection: sqlite3.Connection, annotations: Sequence[Annotation], check: Check
) -> int:
    traces: dict[str, Trace] = {}
    added = 0
    for annotation in annotations:
        trace = traces.get(annotation.trace_id)
        if trace is None:
            trace = _read_trace(connection, annotation.trace_id)
            if trace is None:
                raise _unknown_trace(annotation.trace_id)
            traces[trace.id] = trace
        check(annotation, trace)
        added += _write_annotation(connection, annotation)
    return added


def _read_trace(connection: sqlite3.Connection, trace_id: str) -> Trace | None:
    row = connection.execute("SELECT * FROM traces WHERE id = ?", (trace_id,)).fetchone()
    if row is None:
        return None
    steps = connection.execute(
        "SELECT * FROM steps WHERE trace_id = ? ORDER BY step_index", (trace_id,)
    ).fetchall()
    return Trace(
        id=row["id"],
        title=row["title"],
        metadata=json.loads(row["metadata"]),
        steps=tuple(_step(step) for step in steps),
    )


def _has_same_steps(old: Trace, new: Trace) -> bool:
    # As JSON: Python takes 1, 1.0 and True for equal, and ignores the order of keys.
    return [step.model_dump_json() for step in old.steps] == [
        step.model_dump_json() for step in new.steps
    ]


def _step(row: sqlite3.Row) -> Step:
    return Step(
        role=row["role"],
        content=row["content"],
        tool_name=row["tool_name"],
        tool_input=None if row["tool_input"] is None else json.loads(row["tool_input"]),
        tool_call_id=row["tool_call_id"],
        metadata=json.loads(row["metadata"]),
    )


def _delete_steps(connection: sqlite3.Connection, trace_id: str) -> int:
    connection.execute("DELETE FROM steps WHERE trace_id = ?", (trace_id,))
    deleted = connection.execute(
        "DELETE FROM annotations WHERE trace_id = ? AND step_index IS NOT NULL", (trace_id,)
    )
    return deleted.rowcount


def _write_trace(connection: sqlite3.Connection, trace: Trace, *, with_steps: bool) -> None:
    connection.execute(
        """
        INSERT INTO traces (id, title, metadata) VALUES (?, ?, ?)
        ON CONFLICT (id) DO UPDATE SET title = excluded.title, metadata = excluded.metadata
        """,
        (trace.id, trace.title, json.dumps(trace.metadata)),
    )
    if not with_steps:
        return
    connection.executemany(
        "INSERT INTO steps VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        [
            (
                trace.id,
                index,
                step.role,
                step.content,
                step.tool_name,
                None if step.tool_input is None else json.dumps(step.tool_input),
                step.tool_call_id,
                json.dumps(step.metadata),
            )
            for index, step in enumerate(trace.steps)
        ],
    )


def _write_annotation(connection: sqlite3.Connection, annotation: Annotation) -> int:
    quote = None if annotation.quote is None else annotation.quote.model_dump_json()
    inserted = connection.execute(
        """
        INSERT INTO annotations
            (id, trace_id, step_index, rating, comment, quote, label_error, label_error_note,
             author, created_at)
        VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO NOTHING
        """,
        (
            annotation.id,
            annotation.trace_id,
            annotation.step_index,
            annotation.rating,
            annotation.comment,
            quote,
            int(annotation.label_error),
            annotation.label_error_note,
            annotation.author,
            annotation.created_at.isoformat(),
        ),
    )
    return inserted.rowcount


def _annotation(row: sqlite3.Row) -> Annotation:
    return Annotation(
        id=row["id"],
        trace_id=row["trace_id"],
        step_index=row["step_index"],
        rating=row["rating"],
        comment=row["comment"],
        quote=None if row["quote"] is None else Quote.model_validate_json(row["quote"]),
        label_error=bool(row["label_error"]),
        label_error_note=row["label_error_note"],
        author=row["author"],
        created_at=datetime.fromisoformat(row["created_at"]),
    )


def _summary(row: sqlite3.Row) -> TraceSummary:
    return TraceSummary(
        id=row["id"],
        title=row["title"] or None,
        steps=row["steps"],
        positive=row["positive"],
        negative=row["negative"],
        comments=row["comments"],
    )
