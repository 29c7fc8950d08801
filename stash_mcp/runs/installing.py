"""Which runs asked for their skill to be installed when they end, and what came of it.

Each is settled once: whoever settles it first, by the state it was in, wins. What a full disk and
the like hinder is put off and stays waiting; the pauses grow.
"""

import sqlite3
from collections.abc import Iterable
from datetime import datetime
from typing import Literal

from stash_mcp.models import InstallState, JobStatus, Listener, Notice
from stash_mcp.storage.database import Database

# Bits of the column `install_told`.
_TOLD: dict[Listener, int] = {"agent": 1, "command": 2}
# Of a waiting run the note says why it was put off.
_IS_NEWS = "install_state != 'off' AND install_note IS NOT NULL"
_UNTOLD = f"(install_told & :who) = 0 AND {_IS_NEWS}"

FIRST_PAUSE_SECONDS = 5.0
LONGEST_PAUSE_SECONDS = 600.0


class InstallQueue:
    """table: `jobs` for the runs of this machine, `remote_runs` for those of Stash."""

    def __init__(self, database: Database, table: Literal["jobs", "remote_runs"] = "jobs") -> None:
        self._database = database
        self._table = table

    def waiting(self, at: datetime | None = None) -> list[str]:
        """Ids of the runs that have succeeded and are not settled, oldest first; with `at`, those
        whose pause is over then.
        """
        with self._database.read() as connection:
            rows = connection.execute(
                f"SELECT id, install_due FROM {self._table} "
                "WHERE install_state = 'waiting' AND status = ? ORDER BY seq",
                (JobStatus.SUCCEEDED,),
            ).fetchall()
        return [row["id"] for row in rows if at is None or _is_due(row, at)]

    def settle(self, run_id: str, state: InstallState, note: str, at: datetime) -> bool:
        """Whether it was still to be settled; the log of events of a run of this machine then says
        so, once."""
        with self._database.write() as connection:
            changed = connection.execute(
                f"UPDATE {self._table} SET install_state = ?, install_note = ?, install_told = 0, "
                "install_news_at = ? WHERE id = ? AND install_state = 'waiting'",
                (state, note, at.timestamp(), run_id),
            ).rowcount
            if changed:
                self._add_event(connection, run_id, note, at)
        return bool(changed)

    def put_off(self, run_id: str, note: str, at: datetime) -> None:
        """Leave it waiting for a pause that doubles with each try; the log says so the first time.

        note: why, for whoever looks at the run meanwhile.
        """
        with self._database.write() as connection:
            row = connection.execute(
                f"SELECT install_tries FROM {self._table} "
                "WHERE id = ? AND install_state = 'waiting'",
                (run_id,),
            ).fetchone()
            if row is None:
                return
            tries = int(row["install_tries"])
            # The exponent is bounded: a power of a large count is no float any more.
            pause = min(FIRST_PAUSE_SECONDS * 2 ** min(tries, 30), LONGEST_PAUSE_SECONDS)
            connection.execute(
                f"UPDATE {self._table} SET install_tries = ?, install_due = ?, install_note = ?, "
                "install_news_at = coalesce(install_news_at, ?) WHERE id = ?",
                (tries + 1, at.timestamp() + pause, note, at.timestamp(), run_id),
            )
            if not tries:
                self._add_event(connection, run_id, note, at)

    def end_pauses(self) -> None:
        """Whatever was put off is due now."""
        paused = "install_state = 'waiting' AND install_due IS NOT NULL"
        with self._database.read() as connection:
            if not connection.execute(f"SELECT 1 FROM {self._table} WHERE {paused}").fetchone():
                return
        with self._database.write() as connection:
            connection.execute(f"UPDATE {self._table} SET install_due = NULL WHERE {paused}")

    def _add_event(
        self, connection: sqlite3.Connection, run_id: str, note: str, at: datetime
    ) -> None:
        if self._table == "jobs":
            connection.execute(
                "INSERT INTO events (job_id, at, message) VALUES (?, ?, ?)",
                (run_id, at.isoformat(), note),
            )

    def untold(self, listener: Listener, since: datetime | None = None) -> list[Notice]:
        """What no listener of this kind was told yet; and all that happened after `since`."""
        values = {"who": _TOLD[listener], "since": None if since is None else since.timestamp()}
        with self._database.read() as connection:
            rows = connection.execute(
                f"SELECT id, install_state, install_note FROM {self._table} "
                f"WHERE {_UNTOLD} OR ({_IS_NEWS} AND install_news_at >= :since)",
                values,
            ).fetchall()
        return [
            Notice(
                run_id=row["id"],
                state=row["install_state"],
                note=row["install_note"],
            )
            for row in rows
        ]

    def mark_told(
        self, listener: Listener, notices: Iterable[Notice], since: datetime | None = None
    ) -> list[Notice]:
        """Those that nobody else has marked, which are given out once; and all after `since`."""
        with self._database.write() as connection:
            return [row for row in notices if self._mark(connection, listener, row, since)]

    def _mark(
        self,
        connection: sqlite3.Connection,
        listener: Listener,
        notice: Notice,
        since: datetime | None,
    ) -> bool:
        values = {
            "who": _TOLD[listener],
            "id": notice.run_id,
            "state": notice.state,
            "since": None if since is None else since.timestamp(),
        }
        marked = connection.execute(
            f"UPDATE {self._table} SET install_told = install_told | :who "
            f"WHERE id = :id AND install_state = :state "
            f"AND ({_UNTOLD} OR install_news_at >= :since)",
            values,
        )
        return bool(marked.rowcount)


def _is_due(row: sqlite3.Row, at: datetime) -> bool:
    # Due far ahead: the clock was set back since.
    due = row["install_due"]
    return due is None or not at.timestamp() < due <= at.timestamp() + LONGEST_PAUSE_SECONDS
