import sqlite3
from pathlib import Path

import pytest

from stash_mcp.storage.database import Database
from stash_mcp.storage.migrations import MIGRATIONS
from stash_mcp.storage.sync import SyncedTrace, SyncStore
from stash_mcp.storage.sync_places import SyncPlaces

HOST = "https://stash.example"


def trace(database: Database, local_id: str) -> None:
    with database.write() as connection:
        connection.execute(
            "INSERT INTO traces (id, title, metadata) VALUES (?, NULL, '{}')", (local_id,)
        )


@pytest.fixture
def database(tmp_path: Path) -> Database:
    """With one pair of the first account."""
    path = tmp_path / "library.db"
    connection = sqlite3.connect(path)
    with connection:
        for migration in MIGRATIONS[:8]:
            migration(connection)
        connection.execute("PRAGMA user_version = 8")
        connection.execute("INSERT INTO traces (id, title, metadata) VALUES ('t', NULL, '{}')")
        connection.execute(
            "INSERT INTO synced_traces VALUES (?, 't', 'remote-1', 't', 'hash')", (HOST,)
        )
    connection.close()
    return Database(path)


def test_pairs_of_a_library_of_before_go_on_with_the_account_that_sees_them(
    database: Database,
) -> None:
    assert SyncPlaces(database, HOST).find("key", {"remote-1", "else"}) == HOST


def test_a_key_that_sees_nothing_known_is_of_another_account(database: Database) -> None:
    places = SyncPlaces(database, HOST)
    other = places.find("other", {"remote-2"})
    assert other != HOST
    assert SyncStore(database, other).traces() == []
    assert SyncStore(database, HOST).only_elsewhere()[0] == frozenset()
    assert SyncStore(database, other).only_elsewhere()[0] == {"t"}
    third = places.find("third", ())
    assert len({HOST, other, third}) == 3


def test_a_key_that_was_used_is_known_whatever_it_sees(database: Database) -> None:
    places = SyncPlaces(database, HOST)
    places.find("key", {"remote-1"})
    assert places.find("key", ()) == HOST


def test_a_new_key_is_found_by_what_it_sees_in_a_numbered_account(database: Database) -> None:
    places = SyncPlaces(database, HOST)
    other = places.find("other", ())
    trace(database, "u")
    SyncStore(database, other).put_traces([SyncedTrace("u", "remote-9", "u", "hash")])
    assert places.find("rotated", {"remote-9"}) == other


def test_a_dry_look_remembers_nothing(database: Database) -> None:
    places = SyncPlaces(database, HOST)
    places.find("key", (), remember=False)
    assert places.find("key", {"remote-1"}) == HOST


def test_servers_are_kept_apart(database: Database) -> None:
    server = "https://stash.example:8443"
    assert SyncPlaces(database, server).find("key", {"remote-1"}) == server
