"""The library's schema, as numbered steps. A released step is never changed: add the next one."""

import sqlite3
from collections.abc import Callable

Migration = Callable[[sqlite3.Connection], None]


def _m001_first(connection: sqlite3.Connection) -> None:
    for statement in (
        """
        CREATE TABLE traces (
            seq INTEGER PRIMARY KEY AUTOINCREMENT,
            id TEXT NOT NULL UNIQUE,
            title TEXT,
            metadata TEXT NOT NULL
        )
        """,
        """
        CREATE TABLE steps (
            trace_id TEXT NOT NULL REFERENCES traces (id) ON DELETE CASCADE,
            step_index INTEGER NOT NULL,
            role TEXT NOT NULL,
            content TEXT NOT NULL,
            tool_name TEXT,
            tool_input TEXT,
            tool_call_id TEXT,
            metadata TEXT NOT NULL,
            PRIMARY KEY (trace_id, step_index)
        )
        """,
        """
        CREATE TABLE annotations (
            seq INTEGER PRIMARY KEY AUTOINCREMENT,
            id TEXT NOT NULL UNIQUE,
            trace_id TEXT NOT NULL REFERENCES traces (id) ON DELETE CASCADE,
            step_index INTEGER,
            rating INTEGER CHECK (rating IN (1, -1)),
            comment TEXT,
            quote TEXT,
            label_error INTEGER NOT NULL DEFAULT 0,
            label_error_note TEXT,
            author TEXT,
            created_at TEXT NOT NULL
        )
        """,
        "CREATE INDEX annotations_by_trace ON annotations (trace_id, step_index)",
        """
        CREATE TABLE jobs (
            seq INTEGER PRIMARY KEY AUTOINCREMENT,
            id TEXT NOT NULL UNIQUE,
            kind TEXT NOT NULL,
            name TEXT NOT NULL,
            status TEXT NOT NULL,
            request TEXT NOT NULL,
            plan TEXT NOT NULL,
            progress TEXT NOT NULL,
            result TEXT,
            reason TEXT,
            error TEXT,
            attempts INTEGER NOT NULL DEFAULT 0,
            created_at TEXT NOT NULL,
            started_at TEXT,
            finished_at TEXT
        )
        """,
        "CREATE INDEX jobs_by_status ON jobs (status, seq)",
        """
        CREATE TABLE candidates (
            job_id TEXT NOT NULL REFERENCES jobs (id) ON DELETE CASCADE,
            number INTEGER NOT NULL,
            skill TEXT NOT NULL,
            score REAL NOT NULL,
            parents TEXT NOT NULL,
            scores TEXT NOT NULL,
            PRIMARY KEY (job_id, number)
        )
        """,
        """
        CREATE TABLE events (
            number INTEGER PRIMARY KEY AUTOINCREMENT,
            job_id TEXT NOT NULL REFERENCES jobs (id) ON DELETE CASCADE,
            at TEXT NOT NULL,
            message TEXT NOT NULL
        )
        """,
        "CREATE INDEX events_by_job ON events (job_id, number)",
        """
        CREATE TABLE installations (
            seq INTEGER PRIMARY KEY AUTOINCREMENT,
            path TEXT NOT NULL,
            name TEXT NOT NULL,
            agent TEXT NOT NULL,
            scope TEXT NOT NULL,
            run_id TEXT NOT NULL,
            candidate INTEGER NOT NULL,
            sha256 TEXT NOT NULL,
            installed_at TEXT NOT NULL
        )
        """,
        "CREATE INDEX installations_by_path ON installations (path, seq)",
    ):
        connection.execute(statement)


def _m002_lives_and_request_key(connection: sqlite3.Connection) -> None:
    connection.execute("ALTER TABLE jobs ADD COLUMN heartbeat_at TEXT")
    connection.execute("ALTER TABLE jobs ADD COLUMN request_key TEXT")
    connection.execute("ALTER TABLE jobs ADD COLUMN deaths INTEGER NOT NULL DEFAULT 0")
    connection.execute("ALTER TABLE jobs ADD COLUMN death_place TEXT")
    connection.execute("CREATE INDEX jobs_by_request ON jobs (request_key)")


def _m003_installing_keys_and_goes(connection: sqlite3.Connection) -> None:
    connection.execute("ALTER TABLE jobs ADD COLUMN install TEXT")
    connection.execute("ALTER TABLE jobs ADD COLUMN install_state TEXT NOT NULL DEFAULT 'off'")
    connection.execute("ALTER TABLE jobs ADD COLUMN install_note TEXT")
    connection.execute("ALTER TABLE jobs ADD COLUMN install_told INTEGER NOT NULL DEFAULT 0")
    connection.execute("ALTER TABLE jobs ADD COLUMN needs TEXT NOT NULL DEFAULT '[]'")
    connection.execute("ALTER TABLE jobs ADD COLUMN go INTEGER NOT NULL DEFAULT 1")


def _m004_versions_of_installations(connection: sqlite3.Connection) -> None:
    connection.execute("ALTER TABLE installations ADD COLUMN version INTEGER NOT NULL DEFAULT 1")
    connection.execute("ALTER TABLE installations ADD COLUMN kind TEXT NOT NULL DEFAULT 'install'")
    connection.execute(
        """
        UPDATE installations SET version = (
            SELECT COUNT(*) FROM installations AS earlier
            WHERE earlier.path = installations.path AND earlier.seq <= installations.seq
        )
        """
    )


MIGRATIONS: tuple[Migration, ...] = (
    _m001_first,
    _m002_lives_and_request_key,
    _m003_installing_keys_and_goes,
    _m004_versions_of_installations,
)
