"""The SQLite file: connections, transactions, and its errors in our words.

Each operation opens its own connection, so any thread of any process may call at any time.
WAL lets readers go on while one writer writes; a writer waits for another up to `BUSY_SECONDS`.
"""

import contextlib
import os
import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path

from stash_mcp.errors import (
    DiskFullError,
    InputError,
    LibraryBusyError,
    LibraryDamagedError,
    NotWritableError,
    StorageError,
)
from stash_mcp.storage.files import PRIVATE_FILE_MODE, os_errors, private_dir, try_lock
from stash_mcp.storage.migrations import MIGRATIONS, Migration

BUSY_SECONDS = 30.0


class Database:
    """The file at `path`, migrated to the newest schema when first opened."""

    def __init__(self, path: Path, migrations: Sequence[Migration] = MIGRATIONS) -> None:
        self.path = path
        self._migrations = migrations
        private_dir(path.parent)
        with _sqlite_errors(path):
            _create_private(path)
            # Two processes may open a new library at once, and SQLite's switch to WAL does not
            # wait for the other one.
            with try_lock(path.with_suffix(".lock"), timeout=BUSY_SECONDS) as is_ours:
                if not is_ours:
                    raise _busy(path)
                self._migrate()

    @contextlib.contextmanager
    def read(self) -> Iterator[sqlite3.Connection]:
        """A connection whose statements see one consistent state."""
        with _sqlite_errors(self.path), self._connection() as connection:
            connection.execute("BEGIN")
            try:
                yield connection
            finally:
                connection.rollback()

    @contextlib.contextmanager
    def write(self) -> Iterator[sqlite3.Connection]:
        """A transaction that no other writer shares; committed whole, or not at all."""
        with _sqlite_errors(self.path), self._connection() as connection:
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
            except BaseException:
                connection.rollback()
                raise
            connection.commit()

    def compact(self) -> None:
        """Give the space of deleted rows back to the disk."""
        with _sqlite_errors(self.path), self._connection() as connection:
            connection.execute("VACUUM")

    @contextlib.contextmanager
    def _connection(self) -> Iterator[sqlite3.Connection]:
        connection = sqlite3.connect(self.path, timeout=BUSY_SECONDS, isolation_level=None)
        try:
            connection.row_factory = sqlite3.Row
            # SQLite's own lower() knows ASCII alone.
            connection.create_function("casefold", 1, str.casefold, deterministic=True)
            connection.execute("PRAGMA foreign_keys = ON")
            # FULL: what was said to be stored survives a power cut, not only a kill.
            connection.execute("PRAGMA synchronous = FULL")
            yield connection
        finally:
            connection.close()

    def _migrate(self) -> None:
        with self._connection() as connection:
            if _version(connection) == len(self._migrations):
                return
            connection.execute("PRAGMA journal_mode = WAL")
        with self.write() as connection:
            version = _version(connection)
            if version > len(self._migrations):
                raise StorageError(
                    f"The library {self.path} was made by a newer release of stash-skills "
                    f"(schema {version}; this one knows {len(self._migrations)}).",
                    "Update stash-skills, or set STASH_MCP_HOME to another folder.",
                )
            for number in range(version, len(self._migrations)):
                self._migrations[number](connection)
                connection.execute(f"PRAGMA user_version = {number + 1}")


def _create_private(path: Path) -> None:
    """Make the file before SQLite does, so that it is never readable by others."""
    with os_errors("open the library", path):
        handle = os.open(path, os.O_CREAT | os.O_RDWR, PRIVATE_FILE_MODE)
        os.close(handle)


def _version(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


@contextlib.contextmanager
def _sqlite_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except sqlite3.IntegrityError as error:
        raise LibraryDamagedError(
            f"The library {path} refused a change: {error}.",
            "Do it again; if it stays, keep a copy of that file and report it.",
        ) from error
    except sqlite3.OperationalError as error:
        raise _operational(error, path) from error
    except sqlite3.DatabaseError as error:
        raise LibraryDamagedError(
            f"The library {path} cannot be read: {error}.",
            "Restore a copy of it, or move it away to start with an empty one.",
        ) from error
    except OverflowError as error:
        raise InputError(
            "A number is too large to be stored or looked up.", "Give one below 2^63."
        ) from error
    except UnicodeEncodeError as error:
        raise InputError(
            "A name or a text has half of a surrogate pair, which cannot be stored or looked up.",
            "Write it again in UTF-8.",
        ) from error


def _operational(error: sqlite3.OperationalError, path: Path) -> StorageError:
    words = str(error)
    if "full" in words:
        return DiskFullError(
            f"The disk of the library {path} is full; nothing was changed.",
            "Free some space there and do it again.",
        )
    if "readonly" in words or "unable to open" in words:
        return NotWritableError(
            f"The library {path} cannot be written: {words}.",
            "Check the permissions of its folder, or set STASH_MCP_HOME to another one.",
        )
    if "locked" in words or "busy" in words:
        return _busy(path)
    return StorageError(f"The library {path} failed: {words}.", "Do it again.")


def _busy(path: Path) -> LibraryBusyError:
    return LibraryBusyError(
        f"Another process has been writing to the library {path} for {BUSY_SECONDS:.0f} s.",
        "Wait for it to finish and do it again.",
    )
