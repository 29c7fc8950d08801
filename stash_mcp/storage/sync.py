"""What here is what at Stash: pairs of ids, and what both sides held when they last agreed.

One row a trace and one an annotation, by place: a server, and an account there. A row goes with the
trace or annotation of ours.
"""

import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from stash_mcp.storage.database import Database


@dataclass(frozen=True)
class SyncedTrace:
    """external_id: what Stash knows the trace by on import; None where it knows it by none."""

    local_id: str
    remote_id: str
    external_id: str | None
    hash: str


@dataclass(frozen=True)
class SyncedAnnotation:
    """remote_id: None until it was seen; an export has none. created_at: Stash's, ISO 8601.

    hash: "" while it is being sent, and whether it arrived is not known yet. gone: it was there,
    and somebody deleted it.
    """

    local_id: str
    remote_trace_id: str
    remote_id: str | None
    step_index: int | None
    created_at: str
    hash: str
    gone: bool = False


class SyncStore:
    """place: of which these are the ids; see sync_places.py. The column is called server."""

    def __init__(self, database: Database, place: str) -> None:
        self._database = database
        self._place = place

    def traces(self) -> list[SyncedTrace]:
        with self._database.read() as connection:
            rows = connection.execute(
                "SELECT local_id, remote_id, external_id, hash FROM synced_traces WHERE server = ?",
                (self._place,),
            ).fetchall()
        return [SyncedTrace(**row) for row in rows]

    def put_traces(self, traces: Iterable[SyncedTrace]) -> None:
        """A pair that shares an id with an older one takes its place."""
        with self._database.write() as connection:
            connection.executemany(
                "INSERT OR REPLACE INTO synced_traces VALUES (?, ?, ?, ?, ?)",
                [
                    (self._place, row.local_id, row.remote_id, row.external_id, row.hash)
                    for row in traces
                ],
            )

    def annotations_on(self, remote_trace_ids: Iterable[str]) -> dict[str, list[SyncedAnnotation]]:
        """By remote trace id; every one that is asked for has a list."""
        with self._database.read() as connection:
            return {
                remote_trace_id: self._annotations(connection, remote_trace_id)
                for remote_trace_id in set(remote_trace_ids)
            }

    def put_annotations(self, annotations: Sequence[SyncedAnnotation]) -> None:
        with self._database.write() as connection:
            connection.executemany(
                "INSERT OR REPLACE INTO synced_annotations VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                [
                    (
                        self._place,
                        row.local_id,
                        row.remote_trace_id,
                        row.remote_id,
                        row.step_index,
                        row.created_at,
                        row.hash,
                        int(row.gone),
                    )
                    for row in annotations
                ],
            )

    def mark_gone(self, local_ids: Iterable[str]) -> None:
        """These annotations were deleted at Stash."""
        with self._database.write() as connection:
            connection.executemany(
                "UPDATE synced_annotations SET gone = 1 WHERE server = ? AND local_id = ?",
                [(self._place, local_id) for local_id in local_ids],
            )

    def only_elsewhere(self) -> tuple[frozenset[str], frozenset[str]]:
        """Ids of our traces, and of our annotations, that are paired with other places alone."""
        with self._database.read() as connection:
            traces, annotations = (
                connection.execute(
                    f"SELECT local_id FROM {table} WHERE server != ? "
                    f"EXCEPT SELECT local_id FROM {table} WHERE server = ?",
                    (self._place, self._place),
                ).fetchall()
                for table in ("synced_traces", "synced_annotations")
            )
        return (
            frozenset(row["local_id"] for row in traces),
            frozenset(row["local_id"] for row in annotations),
        )

    def forget_steps(self, remote_trace_ids: Iterable[str]) -> None:
        """Stash drops the annotations on steps that it replaces: they are to be sent again, but
        those that somebody deleted there before.
        """
        with self._database.write() as connection:
            connection.executemany(
                "DELETE FROM synced_annotations WHERE server = ? AND remote_trace_id = ? "
                "AND step_index IS NOT NULL AND NOT gone",
                [(self._place, remote_trace_id) for remote_trace_id in remote_trace_ids],
            )

    def forget_trace(self, remote_trace_id: str) -> None:
        """It is no longer at Stash, and nothing on it."""
        with self._database.write() as connection:
            for table, column in (
                ("synced_annotations", "remote_trace_id"),
                ("synced_traces", "remote_id"),
            ):
                connection.execute(
                    f"DELETE FROM {table} WHERE server = ? AND {column} = ?",
                    (self._place, remote_trace_id),
                )

    def _annotations(
        self, connection: sqlite3.Connection, remote_trace_id: str
    ) -> list[SyncedAnnotation]:
        rows = connection.execute(
            "SELECT local_id, remote_trace_id, remote_id, step_index, created_at, hash, gone "
            "FROM synced_annotations WHERE server = ? AND remote_trace_id = ?",
            (self._place, remote_trace_id),
        ).fetchall()
        return [SyncedAnnotation(**{**row, "gone": bool(row["gone"])}) for row in rows]
