"""What the parts of the local backend share: the library, the jobs, the worker's starter."""

import time
from collections.abc import Callable, Sequence
from datetime import datetime

from stash_mcp.backends.extras import has_extra, missing
from stash_mcp.backends.local.told import ToldHere
from stash_mcp.errors import NotReadyError, StorageError
from stash_mcp.models import Job, JobKind, JobStatus
from stash_mcp.runs.folder import JobFolder
from stash_mcp.runs.launcher import ensure_worker, last_start, spawn_waiting_worker, worker_log
from stash_mcp.runs.reflections import ReflectionStore
from stash_mcp.runs.remote import RemoteRuns
from stash_mcp.runs.store import JobStore
from stash_mcp.settings import Settings, has_variables
from stash_mcp.skills.manifest import Manifest
from stash_mcp.skills.sight import AgentSession
from stash_mcp.storage.database import Database
from stash_mcp.storage.library import Library

REVIVE_SECONDS = 5.0
"""How often, at most, a look at a job also looks whether a worker is alive."""


class Workshop:
    def __init__(
        self,
        settings: Settings,
        clock: Callable[[], datetime],
        new_id: Callable[[], str],
        start_worker: Callable[[Settings], bool] = ensure_worker,
        start_waiting: Callable[[Settings], object] = spawn_waiting_worker,
        session: AgentSession | None = None,
    ) -> None:
        """session: of the agent that this backend works for; None where that is not known."""
        database = Database(settings.library_path)
        self._database = database
        self._settings = settings
        self._clock = clock
        self._new_id = new_id
        self._start_worker = start_worker
        self._start_waiting = start_waiting
        self._session = session
        self._told_here = ToldHere()
        self._library = Library(database)
        self._jobs = JobStore(database, clock)
        self._reflections = ReflectionStore(database, clock)
        self._manifest = Manifest(database)
        self.remote_runs = RemoteRuns(database, clock)
        self._looked_at = float("-inf")
        self._failed_start: str | None = None
        self._revive()

    def _revive(self) -> None:
        """What a dead worker left is carried on by whoever looks next."""
        now = time.monotonic()
        if now - self._looked_at < REVIVE_SECONDS:
            return
        self._looked_at = now
        # Only what can be done with the keys and the installation that this process would hand on.
        if self._jobs.has_work(has_variables) and has_extra("local"):
            # A start writes over what the one before has left.
            failed = last_start(self._settings).failure
            try:
                self._start_worker(self._settings)
            except StorageError as error:
                failed = str(error)
            self._failed_start = failed

    def _stalled(self, job: Job) -> str | None:
        """Why a job stays in the queue, where no worker can come to it."""
        if job.status is not JobStatus.QUEUED:
            return None
        start = last_start(self._settings)
        if start.alive:
            return None
        if not has_extra("local"):
            return str(missing("local", "Doing it"))
        if not has_variables(job.needs):
            return (
                f"No worker is at work, and one that does it needs {', '.join(job.needs)} in its "
                "environment: look again from where that is set."
            )
        failure = start.failure or (self._failed_start if start.is_fresh else None)
        if failure is None:
            return None
        return (
            f"No worker is at work, and the last one could not start: {failure} It is tried again "
            f"whenever somebody looks; its output is in {worker_log(self._settings)}."
        )

    def _start_for(self, needs: Sequence[str]) -> None:
        """See to it that a worker with the keys in `needs` comes to the queue."""
        if not self._start_worker(self._settings) and needs:
            self._start_waiting(self._settings)

    def _trained(self, reward_model_id: str) -> Job:
        job = self._jobs.get(reward_model_id, JobKind.TRAIN)
        if job.status is not JobStatus.SUCCEEDED:
            raise NotReadyError(
                f"The reward model '{reward_model_id}' is {job.status}, not trained.",
                "Wait for it to succeed, or train another one."
                if not job.status.is_final
                else f"It ended with: {job.reason or f'{job.status}.'} Train another one.",
            )
        return job

    def _model_folder(self, job_id: str) -> JobFolder:
        return JobFolder(self._settings.reward_models_dir / job_id)

    def _run_folder(self, job_id: str) -> JobFolder:
        return JobFolder(self._settings.runs_dir / job_id)

    def _job_folder(self, job: Job) -> JobFolder:
        folder = self._run_folder if job.kind is JobKind.GEPA else self._model_folder
        return folder(job.id)
