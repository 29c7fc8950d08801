"""Which account of which Stash the library's pairs belong to.

Stash does not tell whose a key is. A key that was used before belongs to the account that it did
then. A new one belongs to the account whose conversations it sees; where it sees none of any known
account, it is taken for one of another.
"""

import sqlite3
from collections.abc import Container

from stash_mcp.storage.database import Database


class SyncPlaces:
    """server: the base URL. The first account there is called by it alone, the others by a number
    behind it."""

    def __init__(self, database: Database, server: str) -> None:
        self._database = database
        self._server = server

    def find(self, key_mark: str, remote_ids: Container[str], *, remember: bool = True) -> str:
        """The place of the account that this key belongs to.

        key_mark: tells keys apart. remote_ids: of the traces that it sees. remember: so that the
        key is known by itself from now on.
        """
        with self._database.read() as connection:
            known = connection.execute(
                "SELECT place FROM sync_keys WHERE server = ? AND key_mark = ?",
                (self._server, key_mark),
            ).fetchone()
            if known is not None:
                return str(known["place"])
            place = self._seen(connection, remote_ids) or self._new(connection)
        if remember:
            with self._database.write() as connection:
                connection.execute(
                    "INSERT OR REPLACE INTO sync_keys VALUES (?, ?, ?)",
                    (self._server, key_mark, place),
                )
        return place

    def _seen(self, connection: sqlite3.Connection, remote_ids: Container[str]) -> str | None:
        rows = connection.execute("SELECT server, remote_id FROM synced_traces")
        return next(
            (
                str(row["server"])
                for row in rows
                if self._is_here(row["server"]) and row["remote_id"] in remote_ids
            ),
            None,
        )

    def _new(self, connection: sqlite3.Connection) -> str:
        rows = connection.execute(
            "SELECT server AS place FROM synced_traces UNION SELECT place FROM sync_keys"
        ).fetchall()
        taken = {row["place"] for row in rows if self._is_here(row["place"])}
        names = (f"{self._server}#{number}" for number in range(2, len(taken) + 3))
        return next(name for name in (self._server, *names) if name not in taken)

    def _is_here(self, place: str) -> bool:
        return place.partition("#")[0] == self._server
