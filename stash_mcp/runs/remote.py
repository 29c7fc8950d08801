"""The runs of Stash that this library knows: as they were last seen, what is to happen to their
skill, and when the unfinished ones are looked at next.

The times are in the library, so that of several processes one looks, and a restart goes on where
it was. Looks become rarer, from seconds to minutes. A run that the account that asks does not find
is looked at ever more seldom, up to once a day: the key may be another one by then. So the account
need not be known.

A run is of one Stash, which is known by its address. What `at` gives asks and changes those of one
address alone. A run whose address is not known, from before it was kept, is taken for one of them.
"""

import random
import sqlite3
from collections.abc import Callable, Sequence
from datetime import datetime

from pydantic import TypeAdapter, ValidationError

from stash_mcp.errors import NotFoundError
from stash_mcp.models import Candidate, InstallWish, Run
from stash_mcp.storage.database import Database

FIRST_SECONDS = 5.0
LONGEST_SECONDS = 120.0
_GROWTH = 1.5
_LOOKS_AT_ONCE = 10
_LONGEST_POSTPONED_SECONDS = 3600.0
_MOST_AHEAD_SECONDS = 2 * _LONGEST_POSTPONED_SECONDS
FIRST_MISSING_SECONDS = 600.0
LONGEST_MISSING_SECONDS = 86_400.0
_OURS = "(:server IS NULL OR server IS NULL OR server = :server)"
"""Whether a row is of the Stash that is set."""
_CANDIDATES = TypeAdapter(tuple[Candidate, ...])


def seconds_to_next(looks: int, uniform: Callable[[float, float], float] = random.uniform) -> float:
    """From look number `looks`, counted from 1, to the next; up to a quarter less at random, so
    that many clients do not come together.
    """
    # The exponent is bounded: a power of a large count is no float any more.
    longest = min(FIRST_SECONDS * _GROWTH ** min(looks - 1, 30), LONGEST_SECONDS)
    return uniform(0.75 * longest, longest)


class RemoteRuns:
    def __init__(
        self,
        database: Database,
        clock: Callable[[], datetime],
        uniform: Callable[[float, float], float] = random.uniform,
        server: str | None = None,
    ) -> None:
        """server: the base URL of the Stash that is set; None takes the runs of all."""
        self._database = database
        self._clock = clock
        self._uniform = uniform
        self._server = server

    def at(self, server: str | None) -> "RemoteRuns":
        """The same runs, as they are to who asks the Stash at this base URL."""
        return RemoteRuns(self._database, self._clock, self._uniform, server)

    def remember(
        self, run: Run, candidates: Sequence[Candidate], wish: InstallWish | None = None
    ) -> None:
        """Know the run from now on; with a wish, follow it and see to its skill at its end.

        Of one that is known it is the wish that was there first that holds.
        """
        values = {
            "id": run.id,
            "status": run.status,
            "run": run.model_dump_json(),
            "candidates": _CANDIDATES.dump_json(tuple(candidates)).decode(),
            "install": None if wish is None else wish.model_dump_json(),
            "install_state": "off" if wish is None or wish.mode == "off" else "waiting",
            "look_at": None if wish is None or run.status.is_final else self._next(1),
            "server": self._server,
        }
        with self._database.write() as connection:
            connection.execute(
                f"""
                INSERT INTO remote_runs (id, status, run, candidates, server) VALUES
                    (:id, :status, :run, :candidates, :server)
                ON CONFLICT (id) DO UPDATE SET
                    status = :status, run = :run, candidates = :candidates,
                    server = coalesce(:server, server)
                WHERE {_OURS}
                """,
                values,
            )
            if wish is not None:
                connection.execute(
                    f"""
                    UPDATE remote_runs SET install = :install, install_state = :install_state,
                        look_at = :look_at, looks = 1
                    WHERE id = :id AND install IS NULL AND {_OURS}
                    """,
                    values,
                )

    def seen(self, run: Run, candidates: Sequence[Candidate]) -> None:
        """Note how a known run stands; one that is over is followed no more, and one that was
        missing is followed as before.
        """
        with self._database.read() as connection:
            row = _row(connection, run.id)
        if row is None or self._elsewhere(row):
            return
        text = run.model_dump_json()
        followed = row["install"] is not None and not run.status.is_final
        if row["run"] == text and self._is_noted(row, followed):
            return
        was_followed = row["look_at"] is not None and row["missing_at"] is None
        look_at = (row["look_at"] if was_followed else self._next(1)) if followed else None
        listed = _CANDIDATES.dump_json(tuple(candidates)).decode()
        with self._database.write() as connection:
            connection.execute(
                "UPDATE remote_runs SET status = ?, run = ?, candidates = ?, look_at = ?, "
                "server = coalesce(?, server), missing_at = NULL WHERE id = ?",
                (run.status, text, listed, look_at, self._server, run.id),
            )

    def _is_noted(self, row: sqlite3.Row, followed: bool) -> bool:
        placed = self._server is None or row["server"] is not None
        return placed and row["missing_at"] is None and followed == (row["look_at"] is not None)

    def find(self, run_id: str) -> Run | None:
        """The run as it was last seen, with what becomes of its skill; None if it is not known.

        `as_seen` says why it cannot be asked for: it is of another Stash, or was not found.
        """
        with self._database.read() as connection:
            row = _row(connection, run_id)
        return None if row is None else self._run(row)

    def is_elsewhere(self, run_id: str) -> bool:
        """Whether it is known to be of another Stash."""
        with self._database.read() as connection:
            row = _row(connection, run_id)
        return row is not None and self._elsewhere(row)

    def get(self, run_id: str) -> Run:
        run = self.find(run_id)
        if run is None:
            raise NotFoundError(
                f"The run '{run_id}' of Stash is not known here.", "Look at it with get_run first."
            )
        return run

    def candidates(self, run_id: str) -> list[Candidate]:
        """By number; none of a run that is not known."""
        with self._database.read() as connection:
            row = _row(connection, run_id)
        return [] if row is None else list(_CANDIDATES.validate_json(row["candidates"]))

    def all(self) -> list[Run]:
        """Newest first, by when they became known."""
        with self._database.read() as connection:
            rows = connection.execute("SELECT * FROM remote_runs ORDER BY seq DESC").fetchall()
        return [run for row in rows if (run := self._run(row)) is not None]

    # --- following ---

    def has_due(self) -> bool:
        return bool(self._due())

    def claim_due(self) -> list[str]:
        """Ids of the runs that it is time to look at, for the caller alone to look at: the next
        time is set already, should the caller die.
        """
        claimed = []
        for run_id, looks, look_at in self._due():
            with self._database.write() as connection:
                changed = connection.execute(
                    "UPDATE remote_runs SET look_at = ?, looks = ? WHERE id = ? AND look_at = ?",
                    (self._next(looks + 1), looks + 1, run_id, look_at),
                ).rowcount
            if changed:
                claimed.append(run_id)
        return claimed

    def postpone(self, run_id: str, seconds: float) -> None:
        """Look again no earlier than in so many seconds: the server asked for that."""
        seconds = min(seconds, _LONGEST_POSTPONED_SECONDS)
        with self._database.write() as connection:
            connection.execute(
                "UPDATE remote_runs SET look_at = max(look_at, ?) WHERE id = ?",
                (self._now() + seconds, run_id),
            )

    def lose(self, run_id: str) -> None:
        """The account that asks was told that there is no such run: look ever more seldom, and as
        before once somebody who looks at it finds it again.
        """
        now = self._now()
        with self._database.write() as connection:
            row = _row(connection, run_id)
            if row is None or self._elsewhere(row):
                return
            since = min(now if row["missing_at"] is None else row["missing_at"], now)
            longest = min(max(2 * (now - since), FIRST_MISSING_SECONDS), LONGEST_MISSING_SECONDS)
            look_at = now + self._uniform(0.75 * longest, longest)
            connection.execute(
                "UPDATE remote_runs SET missing_at = ?, look_at = CASE WHEN look_at IS NULL "
                "THEN NULL ELSE ? END WHERE id = ?",
                (since, look_at, run_id),
            )

    def _due(self) -> list[tuple[str, int, float]]:
        now = self._now()
        values = {
            "now": now,
            "server": self._server,
            # A clock that was set back must not keep a run from being looked at for days.
            "ahead": now + _MOST_AHEAD_SECONDS,
            "missing_ahead": now + 2 * LONGEST_MISSING_SECONDS,
            "most": _LOOKS_AT_ONCE,
        }
        with self._database.read() as connection:
            rows = connection.execute(
                f"""
                SELECT id, looks, look_at FROM remote_runs WHERE {_OURS} AND (look_at <= :now
                    OR look_at > CASE WHEN missing_at IS NULL THEN :ahead ELSE :missing_ahead END)
                ORDER BY look_at LIMIT :most
                """,
                values,
            ).fetchall()
        return [(row["id"], row["looks"], row["look_at"]) for row in rows]

    def _elsewhere(self, row: sqlite3.Row) -> bool:
        return None not in (self._server, row["server"]) and row["server"] != self._server

    def _run(self, row: sqlite3.Row) -> Run | None:
        run = _run(row)
        return None if run is None else run.model_copy(update={"as_seen": self._as_seen(row)})

    def _as_seen(self, row: sqlite3.Row) -> str | None:
        if self._elsewhere(row):
            return (
                f"Shown as it was last seen: it is of the Stash at {row['server']}, which is not "
                "the one set now."
            )
        if row["missing_at"] is not None:
            return (
                "Shown as it was last seen: it was not found by the account whose key is set. It "
                "is looked for again, up to once a day."
            )
        return None

    def _next(self, looks: int) -> float:
        return self._now() + seconds_to_next(looks, self._uniform)

    def _now(self) -> float:
        return self._clock().timestamp()


def _row(connection: sqlite3.Connection, run_id: str) -> sqlite3.Row | None:
    row: sqlite3.Row | None = connection.execute(
        "SELECT * FROM remote_runs WHERE id = ?", (run_id,)
    ).fetchone()
    return row


def _run(row: sqlite3.Row) -> Run | None:
    try:
        run = Run.model_validate_json(row["run"])
    except ValidationError:
        # Kept by another version; it is seen anew at the next look.
        return None
    wish = row["install"]
    return run.model_copy(
        update={
            "install": InstallWish(mode="off")
            if wish is None
            else InstallWish.model_validate_json(wish),
            "install_state": row["install_state"],
            "install_note": row["install_note"],
        }
    )
