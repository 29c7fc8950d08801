"""Answers that were paid for: model calls and reward scores, keyed by all that decides them.

A second ask with the same key costs nothing, in the same run, after a kill, or in another run. The
store is bounded: beyond `max_bytes` of values the ones not used for longest go. Losing an entry
loses money, never correctness.
"""

import hashlib
import json
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from pydantic import JsonValue

from stash_mcp.storage.database import Database

DEFAULT_MAX_BYTES = 500_000_000
_TRIM_TO = 0.9
_TRIM_EVERY = 200
_USE_NOTED_AFTER_SECONDS = 3600


def call_key(**parts: JsonValue) -> str:
    """SHA-256 over everything that decides an answer; the order of the parts does not matter."""
    canonical = json.dumps(parts, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()


@dataclass(frozen=True)
class CallStats:
    entries: int
    bytes: int
    """Of the values; the file is a little larger."""


class CallStore:
    def __init__(
        self, path: Path, clock: Callable[[], datetime], max_bytes: int = DEFAULT_MAX_BYTES
    ) -> None:
        self._database = Database(path, _MIGRATIONS)
        self._clock = clock
        self._max_bytes = max_bytes
        self._puts = 0

    def get(self, key: str) -> str | None:
        return self.get_many([key]).get(key)

    def get_many(self, keys: Sequence[str]) -> dict[str, str]:
        """The values of those keys that are known."""
        found: dict[str, str] = {}
        stale: list[str] = []
        now = self._now()
        with self._database.read() as connection:
            for key in keys:
                row = connection.execute(
                    "SELECT value, used_at FROM calls WHERE key = ?", (key,)
                ).fetchone()
                if row is not None:
                    found[key] = row["value"]
                    stale += [key] if now - row["used_at"] > _USE_NOTED_AFTER_SECONDS else []
        if stale:
            with self._database.write() as connection:
                connection.executemany(
                    "UPDATE calls SET used_at = ? WHERE key = ?", [(now, key) for key in stale]
                )
        return found

    def put(self, key: str, value: str) -> None:
        self.put_many({key: value})

    def put_many(self, values: Mapping[str, str]) -> None:
        """Keep all of them or, if it is interrupted, none."""
        now = self._now()
        with self._database.write() as connection:
            connection.executemany(
                "INSERT OR REPLACE INTO calls (key, value, size, used_at) VALUES (?, ?, ?, ?)",
                [(key, value, len(value.encode()), now) for key, value in values.items()],
            )
            self._puts += 1
            if self._puts % _TRIM_EVERY == 1:
                self._trim(connection)

    def move(self, key: str, new_key: str) -> None:
        """Keep the value under another key; nothing happens where there is none."""
        with self._database.write() as connection:
            connection.execute("UPDATE OR REPLACE calls SET key = ? WHERE key = ?", (new_key, key))

    def stats(self) -> CallStats:
        with self._database.read() as connection:
            row = connection.execute(
                "SELECT count(*) AS entries, coalesce(sum(size), 0) AS bytes FROM calls"
            ).fetchone()
        return CallStats(row["entries"], row["bytes"])

    def clear(self) -> CallStats:
        """Forget everything; returns what there was."""
        before = self.stats()
        with self._database.write() as connection:
            connection.execute("DELETE FROM calls")
        self._database.compact()
        return before

    def _trim(self, connection: sqlite3.Connection) -> None:
        total = connection.execute("SELECT coalesce(sum(size), 0) FROM calls").fetchone()[0]
        if total <= self._max_bytes:
            return
        connection.execute(
            """
            DELETE FROM calls WHERE key IN (
                SELECT key FROM (
                    SELECT key, sum(size) OVER (ORDER BY used_at DESC, rowid DESC) AS newer
                    FROM calls
                ) WHERE newer > ?
            )
            """,
            (int(self._max_bytes * _TRIM_TO),),
        )

    def _now(self) -> float:
        return self._clock().timestamp()


def _m001_first(connection: sqlite3.Connection) -> None:
    connection.execute(
        """
        CREATE TABLE calls (
            key TEXT PRIMARY KEY,
            value TEXT NOT NULL,
            size INTEGER NOT NULL,
            used_at REAL NOT NULL
        )
        """
    )
    connection.execute("CREATE INDEX calls_by_use ON calls (used_at)")


_MIGRATIONS = (_m001_first,)
