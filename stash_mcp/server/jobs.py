"""Runs and trainings, which share ids and a queue: found, placed and stopped in the same way."""

from collections.abc import Iterable
from dataclasses import dataclass

from stash_mcp.backends.base import Backend
from stash_mcp.errors import NotFoundError
from stash_mcp.models import JobStatus, RewardModel, Run

Job = Run | RewardModel


def find_job(backend: Backend, job_id: str) -> Job:
    """The run, or else the reward model, with this id."""
    try:
        return backend.get_run(job_id)
    except NotFoundError:
        pass
    try:
        return backend.get_reward_model(job_id)
    except NotFoundError as error:
        raise NotFoundError(
            f"There is no run and no reward model '{job_id}'.",
            "list_runs (or `stash-skills runs`) and list_reward_models (or `stash-skills models`) "
            "show the ids.",
        ) from error


def queue_places(models: Iterable[RewardModel], runs: Iterable[Run]) -> dict[str, int]:
    """The place of each waiting job, by its id, from 1: the worker takes the oldest of both kinds."""
    waiting: list[Job] = [*models, *runs]
    # Both lists are newest first; of two jobs of one moment the later one in its list is older.
    waiting.reverse()
    waiting = [job for job in waiting if job.status is JobStatus.QUEUED]
    waiting.sort(key=lambda job: job.created_at)
    return {job.id: place for place, job in enumerate(waiting, start=1)}


@dataclass(frozen=True)
class Stopped:
    """A job after it was told to stop; `was_over`: there was nothing left to stop."""

    job: Job
    was_over: bool

    @property
    def in_words(self) -> str:
        if self.was_over:
            return f"There was nothing to cancel: {self.job.id} had {_ENDINGS[self.job.status]}."
        if isinstance(self.job, Run) and self.job.partial:
            return (
                f"Cancelled {self.job.id}. Candidate {self.job.best_candidate}, the best so far, "
                "stays usable as a partial result."
            )
        return f"Cancelled {self.job.id}."


_ENDINGS = {
    JobStatus.SUCCEEDED: "succeeded",
    JobStatus.FAILED: "failed",
    JobStatus.CANCELLED: "been cancelled before",
}


def stop(backend: Backend, job_id: str) -> Stopped:
    """Cancel the run or the training with this id."""
    was_over = find_job(backend, job_id).status.is_final
    backend.cancel(job_id)
    job = find_job(backend, job_id)
    # It may have come to its end in between.
    return Stopped(job, was_over or job.status is not JobStatus.CANCELLED)
