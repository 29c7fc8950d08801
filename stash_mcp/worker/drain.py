"""Draining the queue: one worker, one job at a time, until nothing is left.

The lock says that the worker lives; the operating system drops it with the process. Whoever holds
it knows that jobs marked as running belong to a dead worker, and queues them again.
"""

import json
import time
from collections.abc import Callable
from datetime import UTC, datetime

from pydantic import BaseModel

from stash_mcp.backends.local import open_local_backend
from stash_mcp.errors import RunError, StashSkillsError, StorageError
from stash_mcp.models import Job, JobKind
from stash_mcp.redaction import redact
from stash_mcp.runs.folder import JobFolder
from stash_mcp.runs.launcher import spawn_worker
from stash_mcp.runs.reflections import Parked
from stash_mcp.runs.store import JobStore
from stash_mcp.settings import Settings, has_variables, secret_values
from stash_mcp.storage.database import Database
from stash_mcp.storage.files import private_dir, try_lock, write_json
from stash_mcp.worker.logs import LOG, job_log
from stash_mcp.worker.watchdog import watched

MAX_DEATHS = 3
# Long enough for a worker that ends because its job was cancelled, and starts the next one.
LOCK_SECONDS = 3.0

Work = Callable[[Job, Settings, JobStore, Callable[[], float]], BaseModel]


def drain(
    settings: Settings,
    monotonic: Callable[[], float] = time.monotonic,
    *,
    wait: bool = False,
    on_arrival: Callable[[], None] = lambda: None,
) -> None:
    """Do every queued job that can be done with this process's keys.

    Returns where another worker is alive; with `wait`, only when nothing is left to do.
    on_arrival: called whenever the queue and its lock could be reached.
    """
    store = JobStore(Database(settings.library_path), lambda: datetime.now(UTC))
    # Again after the lock is dropped: a job that was queued while we were about to go found the
    # lock held and started no worker.
    while store.has_work(has_variables):
        with try_lock(settings.worker_lock_path, timeout=LOCK_SECONDS) as ours:
            on_arrival()
            if not ours:
                if wait:
                    continue
                return
            store.requeue_orphans()
            while job := store.claim_next(has_variables):
                _do(job, settings, store, monotonic)
    on_arrival()


def _do(job: Job, settings: Settings, store: JobStore, monotonic: Callable[[], float]) -> None:
    folder, secrets = _folder(job, settings), secret_values()
    try:
        private_dir(folder.path)
        with job_log(folder.log_path, secrets):
            outcome = _outcome(job, folder, settings, store, monotonic)
    except StorageError as error:
        # The job has no log. Were this left to end the worker, the next one would come to it again.
        store.fail(job.id, str(error), str(error))
        return
    if outcome is None:
        store.park(job.id)
    elif isinstance(outcome, str):
        store.fail(job.id, outcome, folder.end_of_log())
    else:
        store.succeed(job.id, json.dumps(outcome))
        _install(job, settings)


def _install(job: Job, settings: Settings) -> None:
    """Whoever looks next does it if this fails; the run has succeeded all the same."""
    try:
        open_local_backend(settings, start_worker=lambda settings: False).reconcile()
    except StashSkillsError as error:
        LOG.warning("the skill of %s is not installed yet: %s", job.id, error)


def _outcome(
    job: Job,
    folder: JobFolder,
    settings: Settings,
    store: JobStore,
    monotonic: Callable[[], float],
) -> dict[str, object] | str | None:
    """The job's result, which is then in its folder; or the reason why it failed, logged last; or
    None where it waits for the agent."""
    LOG.info("%s %s, attempt %d", job.kind, job.id, job.attempts)
    try:
        with watched(store, job.id, lambda: spawn_worker(settings)):
            result = _result(job, settings, store, monotonic)
        write_json(folder.result_path, result)
    except Parked:
        LOG.info("parked until the agent has answered")
        return None
    except StashSkillsError as error:
        reason = redact(str(error), secret_values())
    except Exception as error:  # noqa: BLE001 - the worker's top handler: the job fails, the queue goes on
        reason = redact(f"Unexpected: {type(error).__name__}: {error}", secret_values())
        LOG.exception("%s", reason)
    else:
        LOG.info("done")
        return result
    LOG.error("%s", reason)
    return reason


def _folder(job: Job, settings: Settings) -> JobFolder:
    parent = settings.runs_dir if job.kind is JobKind.GEPA else settings.reward_models_dir
    return JobFolder(parent / job.id)


def _result(
    job: Job, settings: Settings, store: JobStore, monotonic: Callable[[], float]
) -> dict[str, object]:
    """The content of `result.json`."""
    if job.deaths >= MAX_DEATHS:
        raise RunError(
            f"Its worker died {job.deaths} times at the same place ({job.death_place}).",
            "Look at the end of the job's worker.log; often memory ran out. Start the job again.",
        )
    result = _work(job.kind)(job, settings, store, monotonic).model_dump(mode="json")
    return result if job.kind is JobKind.GEPA else {"metrics": result}


def _work(kind: JobKind) -> Work:
    # Imported here, once the lock is held: the libraries take seconds to load, and whoever looks
    # meanwhile must find a living worker. One that cannot be loaded fails the job, not the worker.
    try:
        if kind is JobKind.GEPA:
            from stash_mcp.worker.run import do_run

            return do_run
        from stash_mcp.worker.train import do_training

        return do_training
    except (ImportError, OSError) as error:
        raise RunError(
            f"A library of the local pipeline cannot be loaded: {error}.",
            "Install it again: pip install --force-reinstall 'stash-skills[local]'.",
        ) from error
