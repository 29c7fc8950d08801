"""The library, its queue, and the worker."""

from collections.abc import Callable
from datetime import datetime

from stash_mcp.backends.extras import has_extra
from stash_mcp.doctor.report import Check, ok, problem, warning
from stash_mcp.models import Job, JobKind, JobStatus
from stash_mcp.runs.launcher import last_start
from stash_mcp.runs.store import JobStore
from stash_mcp.settings import Settings
from stash_mcp.storage.database import Database
from stash_mcp.storage.library import Library

_SILENT_SECONDS = 300
_MINUTE = 60


def library_and_worker(settings: Settings, clock: Callable[[], datetime]) -> list[Check]:
    """StorageError where the library cannot be read."""
    if not settings.library_path.exists():
        return [ok("library", "Empty: nothing was imported yet."), _idle()]
    database = Database(settings.library_path)
    _, traces = Library(database).list_traces(limit=1, offset=0)
    jobs = JobStore(database, clock)
    found = [job for kind in JobKind for job in jobs.all(kind)]
    return [
        ok("library", f"Conversations: {traces:,}; trainings and runs: {len(found):,}."),
        _worker(settings, found, clock()),
    ]


def _idle() -> Check:
    return ok("worker", "None is needed: nothing waits.")


def _worker(settings: Settings, jobs: list[Job], now: datetime) -> Check:
    waiting = [job for job in jobs if job.status is JobStatus.QUEUED]
    running = [job for job in jobs if job.status is JobStatus.RUNNING]
    start = last_start(settings)
    queue = f"{len(waiting)} waiting, {len(running)} running."
    if start.alive:
        return _alive(queue, running, now)
    if not waiting and not running:
        return _idle()
    if not has_extra("local"):
        fix = "Add the local pipeline; then the next look at a job starts a worker."
        return warning("worker", f"{queue} No worker can do it without the local pipeline.", fix)
    if start.failure:
        fix = f"Look at {settings.home / 'worker.log'}; the next look at a job starts one again."
        return problem("worker", f"{queue} The last worker did not start: {start.failure}", fix)
    fix = "stash-skills runs, list_runs or get_run start one, and what was under way goes on."
    return warning("worker", f"{queue} No worker is alive.", fix)


def _alive(queue: str, running: list[Job], now: datetime) -> Check:
    signs = [job.heartbeat_at for job in running if job.heartbeat_at is not None]
    if not signs:
        return ok("worker", f"Alive; {queue}")
    silent = max(0.0, (now - max(signs)).total_seconds())
    said = f"Alive; {queue} Last sign {silent:.0f} s ago."
    if silent < _SILENT_SECONDS:
        return ok("worker", said)
    fix = "It may be busy with one long step; if it stays, cancel the job and resume it."
    return warning("worker", f"Alive; {queue} Silent for {silent / _MINUTE:.0f} min.", fix)
