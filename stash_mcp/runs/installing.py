"""Which runs asked for their skill to be installed when they end, and what came of it.

Each is settled once: whoever settles it first, by the state it was in, wins.
"""

from datetime import datetime
from typing import Literal

from stash_mcp.models import InstallState, JobStatus, Listener, Notice
from stash_mcp.storage.database import Database

# Bits of the column `install_told`.
_TOLD: dict[Listener, int] = {"agent": 1, "command": 2}


class InstallQueue:
    """table: `jobs` for the runs of this machine, `remote_runs` for those of Stash."""

    def __init__(self, database: Database, table: Literal["jobs", "remote_runs"] = "jobs") -> None:
        self._database = database
        self._table = table

    def waiting(self) -> list[str]:
        """Ids of the runs that have succeeded and are not settled, oldest first."""
        with self._database.read() as connection:
            rows = connection.execute(
                f"SELECT id FROM {self._table} "
                "WHERE install_state = 'waiting' AND status = ? ORDER BY seq",
                (JobStatus.SUCCEEDED,),
            ).fetchall()
        return [row["id"] for row in rows]

    def settle(self, run_id: str, state: InstallState, note: str, at: datetime) -> bool:
        """Whether it was still to be settled; the log of events of a run of this machine then says
        so, once."""
        with self._database.write() as connection:
            changed = connection.execute(
                f"UPDATE {self._table} SET install_state = ?, install_note = ? "
                "WHERE id = ? AND install_state = 'waiting'",
                (state, note, run_id),
            ).rowcount
            if changed and self._table == "jobs":
                connection.execute(
                    "INSERT INTO events (job_id, at, message) VALUES (?, ?, ?)",
                    (run_id, at.isoformat(), note),
                )
        return bool(changed)

    def take_notices(self, listener: Listener) -> list[Notice]:
        """What this listener was not told yet; each is given out once."""
        untold = "(install_told & :who) = 0 AND install_state IN ('installed', 'staged')"
        who = {"who": _TOLD[listener]}
        with self._database.read() as connection:
            pending = connection.execute(
                f"SELECT 1 FROM {self._table} WHERE {untold} LIMIT 1", who
            ).fetchone()
        if pending is None:
            return []
        with self._database.write() as connection:
            rows = connection.execute(
                f"UPDATE {self._table} SET install_told = install_told | :who WHERE {untold} "
                "RETURNING id, install_state, install_note",
                who,
            ).fetchall()
        return [
            Notice(
                run_id=row["id"],
                state=row["install_state"],
                note=row["install_note"],
            )
            for row in rows
        ]
