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


def _m005_reflections(connection: sqlite3.Connection) -> None:
    connection.execute("ALTER TABLE jobs ADD COLUMN parked INTEGER NOT NULL DEFAULT 0")
    connection.execute(
        """
        CREATE TABLE reflections (
            job_id TEXT NOT NULL REFERENCES jobs (id) ON DELETE CASCADE,
            number INTEGER NOT NULL,
            key TEXT NOT NULL,
            kind TEXT NOT NULL,
            prompt TEXT NOT NULL,
            present TEXT NOT NULL,
            state TEXT NOT NULL,
            answer TEXT,
            asked_at TEXT NOT NULL,
            answered_at TEXT,
            PRIMARY KEY (job_id, number),
            UNIQUE (job_id, key)
        )
        """
    )
    connection.execute("CREATE INDEX reflections_by_key ON reflections (key)")
    connection.execute("CREATE INDEX reflections_by_state ON reflections (state)")


def _m006_remote_runs(connection: sqlite3.Connection) -> None:
    """Runs of Stash that were started or installed from here, as they were last seen."""
    connection.execute(
        """
        CREATE TABLE remote_runs (
            seq INTEGER PRIMARY KEY AUTOINCREMENT,
            id TEXT NOT NULL UNIQUE,
            status TEXT NOT NULL,
            run TEXT NOT NULL,
            candidates TEXT NOT NULL,
            install TEXT,
            install_state TEXT NOT NULL DEFAULT 'off',
            install_note TEXT,
            install_told INTEGER NOT NULL DEFAULT 0,
            looks INTEGER NOT NULL DEFAULT 0,
            look_at REAL
        )
        """
    )
    connection.execute("CREATE INDEX remote_runs_by_look ON remote_runs (look_at)")


def _m007_sync_with_stash(connection: sqlite3.Connection) -> None:
    connection.execute(
        """
        CREATE TABLE synced_traces (
            server TEXT NOT NULL,
            local_id TEXT NOT NULL REFERENCES traces (id) ON DELETE CASCADE,
            remote_id TEXT NOT NULL,
            external_id TEXT,
            hash TEXT NOT NULL,
            PRIMARY KEY (server, local_id),
            UNIQUE (server, remote_id)
        )
        """
    )
    connection.execute(
        """
        CREATE TABLE synced_annotations (
            server TEXT NOT NULL,
            local_id TEXT NOT NULL REFERENCES annotations (id) ON DELETE CASCADE,
            remote_trace_id TEXT NOT NULL,
            remote_id TEXT,
            step_index INTEGER,
            created_at TEXT NOT NULL,
            hash TEXT NOT NULL,
            PRIMARY KEY (server, local_id)
        )
        """
    )
    connection.execute(
        "CREATE INDEX synced_annotations_by_trace ON synced_annotations (server, remote_trace_id)"
    )


def _m008_tries_of_installing(connection: sqlite3.Connection) -> None:
    """Installing by itself that a full disk and the like put off, and since when there is news."""
    for table in ("jobs", "remote_runs"):
        connection.execute(
            f"ALTER TABLE {table} ADD COLUMN install_tries INTEGER NOT NULL DEFAULT 0"
        )
        connection.execute(f"ALTER TABLE {table} ADD COLUMN install_due REAL")
        connection.execute(f"ALTER TABLE {table} ADD COLUMN install_news_at REAL")


def _m009_servers_of_remote_runs(connection: sqlite3.Connection) -> None:
    """Which Stash a run is of, null where that is not known; and since when the account that asks
    is told that there is no such run. Such runs were given up until now: they are looked at again.
    """
    connection.execute("ALTER TABLE remote_runs ADD COLUMN server TEXT")
    connection.execute("ALTER TABLE remote_runs ADD COLUMN missing_at REAL")
    connection.execute(
        "UPDATE remote_runs SET look_at = 0 WHERE look_at IS NULL AND install IS NOT NULL "
        "AND status IN ('queued', 'running')"
    )


def _m010_accounts_of_stash(connection: sqlite3.Connection) -> None:
    """Which key belongs to which account, and what was deleted at Stash. The accounts that were
    synced with until now are called by their servers."""
    connection.execute(
        """
        CREATE TABLE sync_keys (
            server TEXT NOT NULL,
            key_mark TEXT NOT NULL,
            place TEXT NOT NULL,
            PRIMARY KEY (server, key_mark)
        )
        """
    )
    connection.execute("ALTER TABLE synced_annotations ADD COLUMN gone INTEGER NOT NULL DEFAULT 0")


MIGRATIONS: tuple[Migration, ...] = (
    _m001_first,
    _m002_lives_and_request_key,
    _m003_installing_keys_and_goes,
    _m004_versions_of_installations,
    _m005_reflections,
    _m006_remote_runs,
    _m007_sync_with_stash,
    _m008_tries_of_installing,
    _m009_servers_of_remote_runs,
    _m010_accounts_of_stash,
)
