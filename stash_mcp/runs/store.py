"""The jobs' records: state changes, progress, events, candidates.

States go queued -> running -> succeeded | failed | cancelled, and running -> queued when the
worker that ran a job has died. A run that waits for the agent is parked: it counts as running, and
no worker has it until its reflections are answered. Every change names the state it starts from,
so that of two processes that try the same change one wins and the other is told.
"""

import json
import sqlite3
from collections.abc import Callable, Sequence
from datetime import datetime

from stash_mcp.errors import NotFoundError
from stash_mcp.models import (
    Candidate,
    Event,
    InstallWish,
    Job,
    JobKind,
    JobStatus,
    Plan,
    Progress,
    RunRequest,
    TrainRequest,
)
from stash_mcp.storage.database import Database

Clock = Callable[[], datetime]
Can = Callable[[Sequence[str]], bool]
"""Whether this process has the variables that a job needs."""

# Jobs with a reflection that the agent has not answered.
_WAITING = "SELECT job_id FROM reflections WHERE state = 'pending'"
_NOUNS = {JobKind.GEPA: "run", JobKind.TRAIN: "reward model"}
_LISTINGS = {
    JobKind.GEPA: "List the runs to see their ids (list_runs, or `stash-skills runs`).",
    JobKind.TRAIN: "List the reward models to see their ids (list_reward_models, or "
    "`stash-skills models`).",
}


class JobStore:
    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    def create(
        self,
        job_id: str,
        kind: JobKind,
        name: str,
        request: TrainRequest | RunRequest,
        plan: Plan | None = None,
        request_key: str | None = None,
        install: InstallWish | None = None,
        needs: Sequence[str] = (),
        result: str | None = None,
    ) -> None:
        """Add a job at the end of the queue; or, with a result (JSON text), one that is done.

        request_key: digest of all that decides the job, for finding an equal one. install: what
        happens to the skill at the end. needs: variables that its worker's environment must have.
        """
        status = JobStatus.QUEUED if result is None else JobStatus.SUCCEEDED
        now = self._now()
        with self._database.write() as connection:
            connection.execute(
                """
                INSERT INTO jobs
                    (id, kind, name, status, request, plan, progress, created_at, request_key,
                     result, finished_at, install, install_state, needs)
                VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
                """,
                (
                    job_id,
                    kind,
                    name,
                    status,
                    request.model_dump_json(),
                    "{}" if plan is None else plan.model_dump_json(),
                    Progress().model_dump_json(),
                    now,
                    request_key,
                    result,
                    None if result is None else now,
                    None if install is None else install.model_dump_json(),
                    "off" if install is None or install.mode == "off" else "waiting",
                    json.dumps(list(needs)),
                ),
            )

    def with_request_key(self, request_key: str) -> Job | None:
        """The newest job with this key that is queued, running or succeeded."""
        alive = (JobStatus.QUEUED, JobStatus.RUNNING, JobStatus.SUCCEEDED)
        with self._database.read() as connection:
            row = connection.execute(
                "SELECT * FROM jobs WHERE request_key = ? AND status IN (?, ?, ?) "
                "ORDER BY seq DESC LIMIT 1",
                (request_key, *alive),
            ).fetchone()
        return None if row is None else _job(row)

    def get(self, job_id: str, kind: JobKind | None = None) -> Job:
        """The job with this id; with `kind`, one of another kind counts as unknown."""
        with self._database.read() as connection:
            row = connection.execute("SELECT * FROM jobs WHERE id = ?", (job_id,)).fetchone()
        if row is None or (kind is not None and row["kind"] != kind):
            kind = kind or JobKind.GEPA
            raise NotFoundError(f"There is no {_NOUNS[kind]} '{job_id}'.", _LISTINGS[kind])
        return _job(row)

    def all(self, kind: JobKind) -> list[Job]:
        """Newest first."""
        with self._database.read() as connection:
            rows = connection.execute(
                "SELECT * FROM jobs WHERE kind = ? ORDER BY seq DESC", (kind,)
            ).fetchall()
        return [_job(row) for row in rows]

    def has_work(self, can: Can = lambda needs: True) -> bool:
        """Whether a job waits, or is marked as running (by a worker alive or dead), that can be
        done with what it needs. Parked ones are not counted."""
        with self._database.read() as connection:
            rows = connection.execute(
                "SELECT needs FROM jobs WHERE status IN (?, ?) AND parked = 0",
                (JobStatus.QUEUED, JobStatus.RUNNING),
            ).fetchall()
        return any(can(json.loads(row["needs"])) for row in rows)

    def has_queued(self) -> bool:
        """Whether a job waits for a worker, whatever it needs."""
        with self._database.read() as connection:
            row = connection.execute(
                "SELECT 1 FROM jobs WHERE status = ? LIMIT 1", (JobStatus.QUEUED,)
            ).fetchone()
        return row is not None

    # --- the worker's side ---

    def claim_next(self, can: Can = lambda needs: True) -> Job | None:
        """Mark the oldest queued job that can be done as running and return it."""
        with self._database.write() as connection:
            rows = connection.execute(
                "SELECT id, needs FROM jobs WHERE status = ? ORDER BY seq", (JobStatus.QUEUED,)
            ).fetchall()
            row = next((row for row in rows if can(json.loads(row["needs"]))), None)
            if row is None:
                return None
            connection.execute(
                """
                UPDATE jobs SET status = ?, started_at = coalesce(started_at, ?),
                    attempts = attempts + 1 WHERE id = ?
                """,
                (JobStatus.RUNNING, self._now(), row["id"]),
            )
        return self.get(row["id"])

    def requeue_orphans(self) -> list[str]:
        """Put back what a dead worker left running; to be called by the one living worker.

        Deaths are counted as long as they come at the same place: a job that gets further each
        time is not at fault. A run whose worker died while it waited for the agent is parked.
        """
        with self._database.write() as connection:
            connection.execute(
                f"UPDATE jobs SET parked = 1 WHERE status = ? AND id IN ({_WAITING})",
                (JobStatus.RUNNING,),
            )
            rows = connection.execute(
                "SELECT id, progress, death_place FROM jobs WHERE status = ? AND parked = 0",
                (JobStatus.RUNNING,),
            ).fetchall()
            for row in rows:
                place = _place(Progress.model_validate_json(row["progress"]))
                deaths = "deaths + 1" if place == row["death_place"] else "1"
                connection.execute(
                    f"UPDATE jobs SET status = ?, death_place = ?, deaths = {deaths} WHERE id = ?",
                    (JobStatus.QUEUED, place, row["id"]),
                )
                write_event(connection, row["id"], self._now(), "Its worker died; queued again.")
        return [row["id"] for row in rows]

    def park(self, job_id: str) -> bool:
        """Let go of a running job until the agent has answered; whether anything is to be
        answered still. Where nothing is it goes back to the queue."""
        with self._database.write() as connection:
            parked = connection.execute(
                f"UPDATE jobs SET parked = 1 WHERE id = ? AND status = ? AND id IN ({_WAITING})",
                (job_id, JobStatus.RUNNING),
            ).rowcount
            if not parked:
                connection.execute(
                    "UPDATE jobs SET status = ? WHERE id = ? AND status = ?",
                    (JobStatus.QUEUED, job_id, JobStatus.RUNNING),
                )
        return bool(parked)

    def beat(self, job_id: str) -> JobStatus:
        """Note that the job's worker lives; returns the job's state, which others may change."""
        with self._database.write() as connection:
            row = connection.execute(
                "UPDATE jobs SET heartbeat_at = ? WHERE id = ? RETURNING status",
                (self._now(), job_id),
            ).fetchone()
        return JobStatus(row["status"])

    def cancel(self, job_id: str) -> bool:
        """Whether the job was queued or running; its worker notices and stops."""
        with self._database.write() as connection:
            changed = connection.execute(
                "UPDATE jobs SET status = ?, finished_at = ?, parked = 0 "
                "WHERE id = ? AND status IN (?, ?)",
                (
                    JobStatus.CANCELLED,
                    self._now(),
                    job_id,
                    JobStatus.QUEUED,
                    JobStatus.RUNNING,
                ),
            ).rowcount
            if changed:
                write_event(connection, job_id, self._now(), "Cancelled.")
        return bool(changed)

    def resume(self, job_id: str) -> bool:
        """Queue a failed or cancelled job again; whether it was one."""
        with self._database.write() as connection:
            changed = connection.execute(
                """
                UPDATE jobs SET status = ?, deaths = 0, go = go + 1, reason = NULL, error = NULL,
                    finished_at = NULL WHERE id = ? AND status IN (?, ?)
                """,
                (JobStatus.QUEUED, job_id, JobStatus.FAILED, JobStatus.CANCELLED),
            ).rowcount
            if changed:
                write_event(connection, job_id, self._now(), "Queued again to be continued.")
        return bool(changed)

    def report(self, job_id: str, progress: Progress) -> None:
        with self._database.write() as connection:
            connection.execute(
                "UPDATE jobs SET progress = ?, heartbeat_at = ? WHERE id = ?",
                (progress.model_dump_json(), self._now(), job_id),
            )

    def add_event(self, job_id: str, message: str) -> None:
        with self._database.write() as connection:
            write_event(connection, job_id, self._now(), message)

    def succeed(self, job_id: str, result: str) -> bool:
        """result: JSON text. Whether the job was still running."""
        return self._finish(job_id, JobStatus.SUCCEEDED, result, None, None)

    def fail(self, job_id: str, reason: str, error: str) -> bool:
        """reason: a sentence or two. error: the end of the job's log, the reason last."""
        return self._finish(job_id, JobStatus.FAILED, None, reason, error)

    def _finish(
        self,
        job_id: str,
        status: JobStatus,
        result: str | None,
        reason: str | None,
        error: str | None,
    ) -> bool:
        with self._database.write() as connection:
            changed = connection.execute(
                """
                UPDATE jobs SET status = ?, result = ?, reason = ?, error = ?, finished_at = ?
                WHERE id = ? AND status = ?
                """,
                (status, result, reason, error, self._now(), job_id, JobStatus.RUNNING),
            ).rowcount
            if changed:
                write_event(connection, job_id, self._now(), reason or f"The job {status}.")
        return bool(changed)

    # --- candidates ---

    def keep_candidates(self, job_id: str, count: int) -> None:
        """Delete all but the first `count`."""
        with self._database.write() as connection:
            connection.execute(
                "DELETE FROM candidates WHERE job_id = ? AND number >= ?", (job_id, count)
            )

    def put_candidate(self, job_id: str, candidate: Candidate) -> None:
        with self._database.write() as connection:
            connection.execute(
                "INSERT OR REPLACE INTO candidates VALUES (?, ?, ?, ?, ?, ?)",
                (
                    job_id,
                    candidate.number,
                    candidate.skill,
                    candidate.score,
                    json.dumps(candidate.parents),
                    json.dumps(candidate.scores),
                ),
            )

    def candidates(self, job_id: str) -> list[Candidate]:
        """By number."""
        with self._database.read() as connection:
            rows = connection.execute(
                "SELECT * FROM candidates WHERE job_id = ? ORDER BY number", (job_id,)
            ).fetchall()
        return [
            Candidate(
                number=row["number"],
                skill=row["skill"],
                score=row["score"],
                parents=tuple(json.loads(row["parents"])),
                scores=json.loads(row["scores"]),
            )
            for row in rows
        ]

    def events(self, job_id: str, after: int = 0) -> list[Event]:
        """Oldest first, those numbered above `after`."""
        with self._database.read() as connection:
            rows = connection.execute(
                "SELECT * FROM events WHERE job_id = ? AND number > ? ORDER BY number",
                (job_id, after),
            ).fetchall()
        return [
            Event(
                number=row["number"],
                at=datetime.fromisoformat(row["at"]),
                message=row["message"],
            )
            for row in rows
        ]

    def _now(self) -> str:
        return self._clock().isoformat()


def write_event(connection: sqlite3.Connection, job_id: str, at: str, message: str) -> None:
    """Add a line to a job's history, within a transaction of the caller's."""
    connection.execute(
        "INSERT INTO events (job_id, at, message) VALUES (?, ?, ?)", (job_id, at, message)
    )


def _job(row: sqlite3.Row) -> Job:
    return Job(
        id=row["id"],
        kind=JobKind(row["kind"]),
        name=row["name"],
        status=JobStatus(row["status"]),
        request=json.loads(row["request"]),
        plan=json.loads(row["plan"]),
        progress=Progress.model_validate_json(row["progress"]),
        result=None if row["result"] is None else json.loads(row["result"]),
        reason=row["reason"],
        error=row["error"],
        attempts=row["attempts"],
        needs=tuple(json.loads(row["needs"])),
        go=row["go"],
        parked=bool(row["parked"]),
        deaths=row["deaths"],
        death_place=row["death_place"],
        install=InstallWish(mode="off")
        if row["install"] is None
        else InstallWish.model_validate_json(row["install"]),
        install_state=row["install_state"],
        install_note=row["install_note"],
        heartbeat_at=_time(row["heartbeat_at"]),
        created_at=datetime.fromisoformat(row["created_at"]),
        started_at=_time(row["started_at"]),
        finished_at=_time(row["finished_at"]),
    )


def _place(progress: Progress) -> str:
    return (
        f"{progress.phase}, {progress.done} of {progress.total}, call {progress.metric_calls}, "
        f"proposal {progress.proposals}, candidate {progress.candidates}"
    )


def _time(value: str | None) -> datetime | None:
    return None if value is None else datetime.fromisoformat(value)
