"""Which runs asked for their skill to be installed when they end, and what came of it.

Each is settled once: whoever settles it first, by the state it was in, wins.
"""

from stash_mcp.models import InstallState, JobStatus, Notice
from stash_mcp.storage.database import Database


class InstallQueue:
    def __init__(self, database: Database) -> None:
        self._database = database

    def waiting(self) -> list[str]:
        """Ids of the runs that have succeeded and are not settled, oldest first."""
        with self._database.read() as connection:
            rows = connection.execute(
                "SELECT id FROM jobs WHERE install_state = 'waiting' AND status = ? ORDER BY seq",
                (JobStatus.SUCCEEDED,),
            ).fetchall()
        return [row["id"] for row in rows]

    def settle(self, run_id: str, state: InstallState, note: str) -> bool:
        """Whether it was still to be settled."""
        with self._database.write() as connection:
            changed = connection.execute(
                "UPDATE jobs SET install_state = ?, install_note = ? "
                "WHERE id = ? AND install_state = 'waiting'",
                (state, note, run_id),
            ).rowcount
        return bool(changed)

    def take_notices(self) -> list[Notice]:
        """What nobody was told yet; each is given out once."""
        with self._database.read() as connection:
            pending = connection.execute(
                "SELECT 1 FROM jobs WHERE install_told = 0 AND "
                "install_state IN ('installed', 'staged') LIMIT 1"
            ).fetchone()
        if pending is None:
            return []
        with self._database.write() as connection:
            rows = connection.execute(
                "UPDATE jobs SET install_told = 1 WHERE install_told = 0 AND "
                "install_state IN ('installed', 'staged') "
                "RETURNING id, install_state, install_note"
            ).fetchall()
        return [
            Notice(
                run_id=row["id"],
                state=row["install_state"],
                note=row["install_note"],
            )
            for row in rows
        ]
