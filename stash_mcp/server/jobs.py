"""Runs and trainings, which share ids and a queue: found, placed and stopped in the same way."""

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from stash_mcp.backends.base import Backend
from stash_mcp.errors import NotFoundError
from stash_mcp.models import JobStatus, RewardModel, Run

Job = Run | RewardModel

_ENDINGS = {
    JobStatus.SUCCEEDED: "succeeded",
    JobStatus.FAILED: "failed",
    JobStatus.CANCELLED: "been cancelled before",
}


def find_job(backend: Backend, job_id: str) -> Job:
    """The run, or else the reward model, with this id."""
    with contextlib.suppress(NotFoundError):
        return backend.get_run(job_id)
    try:
        return backend.get_reward_model(job_id)
    except NotFoundError as error:
        raise NotFoundError(
            f"There is no run and no reward model '{job_id}'.",
            "list_runs (or `stash-skills runs`) and list_reward_models (or `stash-skills models`) "
            "show the ids.",
        ) from error


def seconds_to_next_look(job: Job, looks: int, local_seconds: float, now: datetime) -> float:
    """After so many looks in a row. Stash is asked more seldom than this machine, and ever more so:
    at a quarter of a second here, after 2 seconds and up to 15 there. A job that is long under way
    is asked for at its pace from the first look on, so that waits in a row do not begin anew.
    """
    if job.backend == "local":
        return local_seconds
    age = (now - job.created_at).total_seconds()
    return local_seconds * float(min(max(8 * 1.5 ** min(looks - 1, 10), 8 + 2 * age), 60))


def queue_places(models: Sequence[RewardModel], runs: Sequence[Run]) -> dict[str, int]:
    """The place from 1 of each job of this machine that waits, by its id. Both lists are newest
    first; the worker takes the oldest of both kinds.
    """
    oldest_first: list[Job] = [*reversed(models), *reversed(runs)]
    waiting = [
        job for job in oldest_first if job.status is JobStatus.QUEUED and job.backend == "local"
    ]
    waiting.sort(key=lambda job: job.created_at)
    return {job.id: place for place, job in enumerate(waiting, start=1)}


@dataclass(frozen=True)
class Stopped:
    """A job after it was told to stop; `was_over`: there was nothing left to stop."""

    job: Job
    was_over: bool

    @property
    def in_words(self) -> str:
        job = self.job
        if self.was_over:
            return f"There was nothing to cancel: {job.id} had {_ENDINGS[job.status]}."
        if isinstance(job, Run) and job.partial:
            return (
                f"Cancelled {job.id}. Candidate {job.best_candidate}, the best so far, stays "
                "usable as a partial result."
            )
        return f"Cancelled {job.id}."


def stop(backend: Backend, job_id: str) -> Stopped:
    """Cancel the run or the training with this id."""
    was_over = find_job(backend, job_id).status.is_final
    backend.cancel(job_id)
    job = find_job(backend, job_id)
    # It may have come to its end in between.
    return Stopped(job, was_over or job.status is not JobStatus.CANCELLED)
