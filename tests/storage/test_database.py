"""The library's file: made private, migrated, whole transactions, errors in our words."""

import sqlite3
import stat
import sys
from pathlib import Path

import pytest

from stash_mcp.errors import (
    DiskFullError,
    InputError,
    LibraryBusyError,
    LibraryDamagedError,
    StorageError,
)
from stash_mcp.storage import database as database_module
from stash_mcp.storage.database import Database
from stash_mcp.storage.files import try_lock
from stash_mcp.storage.migrations import MIGRATIONS

INSERT = "INSERT INTO traces (id, title, metadata) VALUES (?, ?, '{}')"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "home" / "library.db"


def trace_ids(database: Database) -> list[str]:
    with database.read() as connection:
        return [row["id"] for row in connection.execute("SELECT id FROM traces ORDER BY id")]


def test_a_new_library_is_migrated_and_writes_ahead(path: Path) -> None:
    with Database(path).read() as connection:
        assert connection.execute("PRAGMA user_version").fetchone()[0] == len(MIGRATIONS)
        assert connection.execute("PRAGMA journal_mode").fetchone()[0] == "wal"
        assert connection.execute("PRAGMA foreign_keys").fetchone()[0] == 1


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such modes")
def test_the_library_is_private(path: Path) -> None:
    database = Database(path)
    with database.write() as connection:
        connection.execute(INSERT, ("a", None))
        files = list(path.parent.glob("library.db*"))
        assert len(files) == 3
        assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_opening_a_library_again_keeps_what_is_in_it(path: Path) -> None:
    with Database(path).write() as connection:
        connection.execute(INSERT, ("a", None))
    assert trace_ids(Database(path)) == ["a"]


def test_a_transaction_that_fails_changes_nothing(path: Path) -> None:
    def write_and_fail() -> None:
        with database.write() as connection:
            connection.execute(INSERT, ("a", None))
            raise KeyError("a")

    database = Database(path)
    with pytest.raises(KeyError):
        write_and_fail()
    assert trace_ids(database) == []


def test_a_reader_sees_one_state_while_a_writer_commits(path: Path) -> None:
    database = Database(path)
    count = "SELECT count(*) FROM traces"
    with database.read() as reader:
        assert reader.execute(count).fetchone()[0] == 0
        with database.write() as writer:
            writer.execute(INSERT, ("a", None))
        assert reader.execute(count).fetchone()[0] == 0
    assert trace_ids(database) == ["a"]


def test_a_full_disk_is_named_and_changes_nothing(path: Path) -> None:
    def write_beyond_the_last_page() -> None:
        with database.write() as connection:
            pages = connection.execute("PRAGMA page_count").fetchone()[0]
            connection.execute(f"PRAGMA max_page_count = {pages}")
            connection.execute(INSERT, ("a", "x" * 1_000_000))

    database = Database(path)
    with pytest.raises(DiskFullError, match="nothing was changed"):
        write_beyond_the_last_page()
    assert trace_ids(database) == []


def test_a_writer_that_waits_too_long_says_that_the_library_is_busy(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = Database(path)
    monkeypatch.setattr(database_module, "BUSY_SECONDS", 0.0)
    with database.write():  # noqa: SIM117
        with pytest.raises(LibraryBusyError), database.write():
            pass


def test_a_library_that_another_process_is_making_is_busy(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database_module, "BUSY_SECONDS", 0.0)
    with try_lock(path.with_suffix(".lock")), pytest.raises(LibraryBusyError):
        Database(path)
    assert trace_ids(Database(path)) == []


def test_a_library_of_a_newer_release_is_refused_untouched(path: Path) -> None:
    Database(path)
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA user_version = 99")
    connection.close()
    with pytest.raises(StorageError, match=r"newer release .* \(schema 99; this one knows"):
        Database(path)


def test_a_file_that_is_no_library_is_named_as_damaged(path: Path) -> None:
    path.parent.mkdir()
    path.write_bytes(b"this is not a database, " * 100)
    with pytest.raises(LibraryDamagedError, match="cannot be read"):
        Database(path)


def test_a_folder_in_the_librarys_place_is_a_storage_error(path: Path) -> None:
    path.mkdir(parents=True)
    with pytest.raises(StorageError, match="Could not open the library"):
        Database(path)


def test_text_that_has_no_utf8_is_an_input_error(path: Path) -> None:
    database = Database(path)
    with pytest.raises(InputError, match="half of a surrogate pair"), database.read() as connection:
        connection.execute("SELECT * FROM traces WHERE id = ?", ("\udcff",))


def test_a_number_that_sqlite_does_not_hold_is_refused_in_words(tmp_path: Path) -> None:
    database = Database(tmp_path / "library.db")
    with pytest.raises(InputError, match="too large to be stored"), database.read() as connection:
        connection.execute("SELECT * FROM traces WHERE seq = ?", (2**63,))
