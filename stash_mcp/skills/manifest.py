"""What we installed where: rows in the library, not files in the skills' folders."""

import contextlib
import sqlite3
from collections.abc import Iterator

from stash_mcp.models import Installation
from stash_mcp.storage.database import Database


class Manifest:
    """The history of installations; the latest one of a path says what should stand there."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def record(self, installation: Installation) -> None:
        with self.recording(installation):
            pass

    @contextlib.contextmanager
    def recording(self, installation: Installation) -> Iterator[None]:
        """Record the installation if the block, which writes the file, succeeds.

        The library is known to be writable before the block runs. A kill between the block's end
        and the commit leaves a whole file that is not recorded; installing it again records it.
        """
        row = {**dict(installation), "installed_at": installation.installed_at.isoformat()}
        with self._database.write() as connection:
            connection.execute(
                """
                INSERT INTO installations
                    (path, name, agent, scope, run_id, candidate, sha256, installed_at, version,
                     kind)
                VALUES (:path, :name, :agent, :scope, :run_id, :candidate, :sha256, :installed_at,
                        :version, :kind)
                """,
                row,
            )
            yield

    def latest(self, path: str) -> Installation | None:
        """The last thing that we did to this file; an `uninstall` where we took it away."""
        with self._database.read() as connection:
            row = connection.execute(
                "SELECT * FROM installations WHERE path = ? ORDER BY seq DESC LIMIT 1", (path,)
            ).fetchone()
        return None if row is None else _installation(row)

    def versions(self, path: str) -> list[Installation]:
        """What we wrote to this file, oldest first."""
        with self._database.read() as connection:
            rows = connection.execute(
                "SELECT * FROM installations WHERE path = ? AND kind != 'uninstall' ORDER BY seq",
                (path,),
            ).fetchall()
        return [_installation(row) for row in rows]

    def move(self, old: str, new: str) -> None:
        """The history of the file `old` becomes that of `new`, its path now."""
        with self._database.write() as connection:
            connection.execute("UPDATE installations SET path = ? WHERE path = ?", (new, old))

    def next_version(self, path: str) -> int:
        with self._database.read() as connection:
            [count] = connection.execute(
                "SELECT COUNT(*) FROM installations WHERE path = ? AND kind != 'uninstall'", (path,)
            ).fetchone()
        return int(count) + 1

    def of_run(self, run_id: str) -> list[Installation]:
        """What was installed from this run, oldest first."""
        return [row for row in self.all() if row.run_id == run_id]

    def taken_away(self) -> frozenset[str]:
        """The runs whose skill was uninstalled wherever it was."""
        latest = self.latest_of_each()
        taken = frozenset(row.run_id for row in latest if row.kind == "uninstall")
        return taken - self.standing()

    def standing(self) -> frozenset[str]:
        """The runs whose skill is installed somewhere now."""
        return frozenset(row.run_id for row in self.latest_of_each() if row.kind != "uninstall")

    def latest_of_each(self) -> list[Installation]:
        """The last thing that we did to each file, in the order of the first installations."""
        latest: dict[str, Installation] = {}
        for row in self.all():
            latest[row.path] = row
        return list(latest.values())

    def all(self) -> list[Installation]:
        """Everything that was done, oldest first."""
        with self._database.read() as connection:
            rows = connection.execute("SELECT * FROM installations ORDER BY seq").fetchall()
        return [_installation(row) for row in rows]


def _installation(row: sqlite3.Row) -> Installation:
    return Installation.model_validate({key: row[key] for key in Installation.model_fields})
