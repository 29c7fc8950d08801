import sqlite3
from datetime import UTC, datetime
from pathlib import Path

from stash_mcp.models import JobKind, JobStatus
from stash_mcp.runs.remote import RemoteRuns
from stash_mcp.runs.store import JobStore
from stash_mcp.skills.manifest import Manifest
from stash_mcp.storage.database import Database
from stash_mcp.storage.library import Library
from stash_mcp.storage.migrations import MIGRATIONS

NOW = "2026-01-01T00:00:00+00:00"


def first_library(path: Path) -> None:
    """A library as the first schema had it, with a conversation, a comment and a job."""
    connection = sqlite3.connect(path)
    with connection:
        MIGRATIONS[0](connection)
        connection.execute("PRAGMA user_version = 1")
        connection.execute("INSERT INTO traces (id, title, metadata) VALUES ('t', NULL, '{}')")
        connection.execute(
            "INSERT INTO steps VALUES ('t', 0, 'user', 'hello', NULL, NULL, NULL, '{}')"
        )
        connection.execute(
            "INSERT INTO annotations (id, trace_id, comment, created_at) "
            "VALUES ('a', 't', 'Be kind.', ?)",
            (NOW,),
        )
        connection.execute(
            "INSERT INTO jobs (id, kind, name, status, request, plan, progress, created_at) "
            "VALUES ('rm', 'train', 'old', 'succeeded', '{}', '{}', '{}', ?)",
            (NOW,),
        )
    connection.close()


def test_a_library_of_the_first_schema_opens_with_everything_in_it(tmp_path: Path) -> None:
    first_library(tmp_path / "library.db")
    database = Database(tmp_path / "library.db")
    assert Library(database).trace("t").steps[0].content == "hello"
    assert Library(database).annotations(["t"])[0].comment == "Be kind."
    store = JobStore(database, lambda: datetime.now(UTC))
    assert store.get("rm", JobKind.TRAIN).status is JobStatus.SUCCEEDED
    with database.read() as connection:
        assert connection.execute("PRAGMA user_version").fetchone()[0] == len(MIGRATIONS)


def test_each_migration_makes_one_step_of_the_schema(tmp_path: Path) -> None:
    connection = sqlite3.connect(tmp_path / "steps.db")
    schemas = []
    for migration in MIGRATIONS:
        migration(connection)
        rows = connection.execute("SELECT sql FROM sqlite_master ORDER BY name").fetchall()
        schemas.append(rows)
    connection.close()
    assert len(schemas) == len({str(schema) for schema in schemas})


def test_installations_that_were_there_get_their_versions(tmp_path: Path) -> None:
    first_library(tmp_path / "library.db")
    connection = sqlite3.connect(tmp_path / "library.db")
    with connection:
        connection.executemany(
            "INSERT INTO installations (path, name, agent, scope, run_id, candidate, sha256, "
            "installed_at) VALUES (?, 'x', 'claude-code', 'user', 'run-1', 1, '0', ?)",
            [("/a", NOW), ("/b", NOW), ("/a", NOW)],
        )
    connection.close()
    rows = Manifest(Database(tmp_path / "library.db")).all()
    assert [(row.path, row.version, row.kind) for row in rows] == [
        ("/a", 1, "install"),
        ("/b", 1, "install"),
        ("/a", 2, "install"),
    ]


def test_runs_of_stash_that_were_given_up_are_looked_at_again(tmp_path: Path) -> None:
    path = tmp_path / "library.db"
    connection = sqlite3.connect(path)
    with connection:
        for migration in MIGRATIONS[:8]:
            migration(connection)
        connection.execute("PRAGMA user_version = 8")
        rows = [("lost", "running", "{}"), ("seen", "running", None), ("over", "succeeded", "{}")]
        connection.executemany(
            "INSERT INTO remote_runs (id, status, run, candidates, install) "
            "VALUES (?, ?, '{}', '[]', ?)",
            rows,
        )
    connection.close()
    runs = RemoteRuns(Database(path), lambda: datetime.now(UTC), server="https://here")
    assert runs.claim_due() == ["lost"]
    assert not runs.is_elsewhere("lost")
