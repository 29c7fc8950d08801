"""What runs ask the agent that is connected, and what it answered.

A run that is carried on asks the very same again and finds its answer here, so nothing is asked
twice of an agent, and an answer may come hours later, from another session.
"""

import sqlite3
from collections.abc import Callable, Collection
from dataclasses import dataclass
from datetime import datetime

from stash_mcp.errors import NotFoundError
from stash_mcp.models import JobStatus, Reflection, ReflectionKind, Usage
from stash_mcp.runs.store import write_event
from stash_mcp.storage.calls import call_key
from stash_mcp.storage.database import Database


class Parked(BaseException):
    """A run waits for the agent longer than its worker can. Not an Exception: GEPA, which swallows
    those, must not take it for a failed proposal."""


@dataclass(frozen=True)
class Question:
    """prompt: all that the agent is told. present: the body that a new one must differ from."""

    kind: ReflectionKind
    prompt: str
    present: str = ""

    @property
    def key(self) -> str:
        return call_key(kind=self.kind, prompt=self.prompt, present=self.present)


class ReflectionStore:
    def __init__(self, database: Database, clock: Callable[[], datetime]) -> None:
        self._database = database
        self._clock = clock

    # --- the worker's side ---

    def ask(self, run_id: str, question: Question, *, fresh: bool = False) -> Reflection:
        """The run's reflection with this question, which waits for the agent if it is new.

        An answer to the same question in another run is taken, unless `fresh`.
        """
        with self._database.write() as connection:
            row = connection.execute(
                "SELECT * FROM reflections WHERE job_id = ? AND key = ?", (run_id, question.key)
            ).fetchone()
            if row is None:
                answer = None if fresh else _answer_elsewhere(connection, question.key)
                self._add(connection, run_id, question, answer)
            elif row["state"] == "closed":
                connection.execute(
                    "UPDATE reflections SET state = 'pending' WHERE job_id = ? AND key = ?",
                    (run_id, question.key),
                )
            row = connection.execute(
                "SELECT * FROM reflections WHERE job_id = ? AND key = ?", (run_id, question.key)
            ).fetchone()
        return _reflection(row)

    def _add(
        self, connection: sqlite3.Connection, run_id: str, question: Question, answer: str | None
    ) -> None:
        now = self._clock().isoformat()
        [number] = connection.execute(
            "SELECT coalesce(max(number), 0) + 1 FROM reflections WHERE job_id = ?", (run_id,)
        ).fetchone()
        connection.execute(
            """
            INSERT INTO reflections
                (job_id, number, key, kind, prompt, present, state, answer, asked_at, answered_at)
            VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
            """,
            (
                *(run_id, number, question.key, question.kind, question.prompt, question.present),
                *("pending" if answer is None else "remembered", answer, now),
                None if answer is None else now,
            ),
        )
        if answer is None:
            asked = f"Reflection {number} waits for the agent: get_reflection, or `stash-skills "
            write_event(connection, run_id, now, f"{asked}reflection {run_id} {number}`.")

    def close_others(self, run_id: str, asked: Collection[int]) -> None:
        """Close what waits and is not among the numbers that this pass of the run asked."""
        with self._database.write() as connection:
            for number in set(_pending(connection, run_id)) - set(asked):
                connection.execute(
                    "UPDATE reflections SET state = 'closed' WHERE job_id = ? AND number = ?",
                    (run_id, number),
                )

    def last_answered(self, run_id: str) -> int:
        """The highest number that has an answer; 0 where none has."""
        with self._database.read() as connection:
            [number] = connection.execute(
                "SELECT coalesce(max(number), 0) FROM reflections "
                "WHERE job_id = ? AND answer IS NOT NULL",
                (run_id,),
            ).fetchone()
        return int(number)

    def usage(self, run_id: str) -> Usage:
        """What the run asked the agent: its answers are the calls, and cost nothing here."""
        with self._database.read() as connection:
            counts = dict(
                connection.execute(
                    "SELECT state, count(*) FROM reflections WHERE job_id = ? GROUP BY state",
                    (run_id,),
                ).fetchall()
            )
        return Usage(
            calls=counts.get("answered", 0),
            remembered=counts.get("remembered", 0),
            cost_usd=0.0,
        )

    # --- the agent's side ---

    def get(self, run_id: str, number: int) -> Reflection:
        with self._database.read() as connection:
            row = connection.execute(
                "SELECT * FROM reflections WHERE job_id = ? AND number = ?", (run_id, number)
            ).fetchone()
        if row is None:
            raise NotFoundError(
                f"The run '{run_id}' has no reflection {number}.",
                "Leave the number out to get the first one that waits (get_reflection, or "
                f"`stash-skills reflection {run_id}`).",
            )
        return _reflection(row)

    def pending(self, run_id: str) -> tuple[int, ...]:
        """Numbers of those that wait, the oldest first."""
        with self._database.read() as connection:
            return _pending(connection, run_id)

    def all_pending(self) -> dict[str, tuple[int, ...]]:
        """The same for every run that waits, by its id."""
        numbers: dict[str, tuple[int, ...]] = {}
        with self._database.read() as connection:
            for row in connection.execute(
                "SELECT job_id, number FROM reflections WHERE state = 'pending' ORDER BY number"
            ):
                numbers[row["job_id"]] = (*numbers.get(row["job_id"], ()), row["number"])
        return numbers

    def answer(self, run_id: str, number: int, answer: str) -> bool:
        """Keep the answer to one that waits; whether it did, in a run that is not over.

        A parked run goes back to the queue with the last answer.
        """
        now = self._clock().isoformat()
        with self._database.write() as connection:
            changed = connection.execute(
                """
                UPDATE reflections SET state = 'answered', answer = ?, answered_at = ?
                WHERE job_id = ? AND number = ? AND state = 'pending'
                    AND job_id IN (SELECT id FROM jobs WHERE status IN (?, ?))
                """,
                (answer, now, run_id, number, JobStatus.QUEUED, JobStatus.RUNNING),
            ).rowcount
            if changed:
                write_event(connection, run_id, now, f"Reflection {number} is answered.")
            if changed and not _pending(connection, run_id):
                connection.execute(
                    "UPDATE jobs SET status = ?, parked = 0 WHERE id = ? AND parked = 1",
                    (JobStatus.QUEUED, run_id),
                )
        return bool(changed)


def _answer_elsewhere(connection: sqlite3.Connection, key: str) -> str | None:
    row = connection.execute(
        "SELECT answer FROM reflections WHERE key = ? AND state = 'answered' "
        "ORDER BY answered_at LIMIT 1",
        (key,),
    ).fetchone()
    return None if row is None else str(row["answer"])


def _pending(connection: sqlite3.Connection, run_id: str) -> tuple[int, ...]:
    rows = connection.execute(
        "SELECT number FROM reflections WHERE job_id = ? AND state = 'pending' ORDER BY number",
        (run_id,),
    ).fetchall()
    return tuple(row["number"] for row in rows)


def _reflection(row: sqlite3.Row) -> Reflection:
    answered = row["answered_at"]
    return Reflection(
        run_id=row["job_id"],
        number=row["number"],
        kind=row["kind"],
        prompt=row["prompt"],
        present=row["present"],
        state=row["state"],
        answer=row["answer"],
        asked_at=datetime.fromisoformat(row["asked_at"]),
        answered_at=None if answered is None else datetime.fromisoformat(answered),
    )
