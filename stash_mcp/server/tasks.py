"""What a run or a training looks like as a task: its handle, its state and its result."""

from collections.abc import Callable
from datetime import datetime
from typing import Any, Literal

from mcp.types import CallToolResult, Result, TextContent
from pydantic import BaseModel

from stash_mcp.backends.base import Backend
from stash_mcp.models import AGENT_REFLECTION, JobStatus, Run
from stash_mcp.server.counting import count, duration
from stash_mcp.server.jobs import Job, find_job, queue_places
from stash_mcp.server.run_results import StartResult
from stash_mcp.server.training_results import TrainResult
from stash_mcp.server.wording import (
    at_the_end,
    equal_run_in_words,
    next_for_run,
    next_step,
    start_in_words,
    where_it_stands,
)

POLL_MILLISECONDS = 5000

TaskStatus = Literal["working", "completed", "cancelled"]
_STATUSES: dict[JobStatus, TaskStatus] = {
    JobStatus.QUEUED: "working",
    JobStatus.RUNNING: "working",
    JobStatus.SUCCEEDED: "completed",
    # Not "failed": that is for a call that ended in an error of the protocol. The result says it.
    JobStatus.FAILED: "completed",
    JobStatus.CANCELLED: "cancelled",
}


class Task(Result):
    """created_at, last_updated_at: ISO 8601. result: of a completed one, what the call answers."""

    result_type: Literal["task", "complete"]
    task_id: str
    status: TaskStatus
    status_message: str
    created_at: str
    last_updated_at: str
    poll_interval_ms: int = POLL_MILLISECONDS
    result: CallToolResult | None = None

    def wire(self) -> dict[str, Any]:
        # The SDK leaves out what is null; this one has to be there, and null means for ever.
        return {**self.model_dump(mode="json", by_alias=True, exclude_none=True), "ttlMs": None}


class _Started(BaseModel):
    """The part of a starting tool's answer that says which job it is about."""

    run_id: str | None = None
    reward_model_id: str | None = None
    existing: bool = False
    warning: str | None = None

    @property
    def job_id(self) -> str:
        job_id = self.run_id or self.reward_model_id
        assert job_id is not None
        return job_id


def handle(found: Callable[[str], Backend], answer: CallToolResult) -> dict[str, Any] | None:
    """The task that a call is answered with; None where its own answer serves better.

    found: the backend that has the job of this id. answer: of the tool that started the job.
    """
    started = _Started.model_validate(answer.structured_content)
    job = find_job(found(started.job_id), started.job_id)
    if job.status.is_final or _needs_the_agent(job):
        return None
    return _task(job, "task", _opening(job, started)).wire()


def state(backend: Backend, job_id: str) -> dict[str, Any]:
    job = find_job(backend, job_id)
    task = _task(job, "complete", _message(backend, job))
    return task.model_copy(update={"result": _result(job)}).wire()


def _needs_the_agent(job: Job) -> bool:
    """A client that waits for the end would not tell its agent of the reflections it has to write,
    and the run would wait for ever.
    """
    return isinstance(job, Run) and job.request.reflection_model == AGENT_REFLECTION


def _task(job: Job, result_type: Literal["task", "complete"], message: str) -> Task:
    return Task(
        result_type=result_type,
        task_id=job.id,
        status=_STATUSES[job.status],
        status_message=message,
        created_at=job.created_at.isoformat(),
        last_updated_at=_updated_at(job).isoformat(),
    )


def _updated_at(job: Job) -> datetime:
    moments = (job.created_at, job.started_at, job.heartbeat_at, job.finished_at)
    return max(moment for moment in moments if moment is not None)


def _opening(job: Job, started: _Started) -> str:
    """The plan, which the person should see, since the answer that has it comes at the end."""
    where = f'get_run(run_id="{job.id}") shows where it stands; it goes on if this session ends.'
    if not isinstance(job, Run):
        return f"Training {job.id} learns from {count(job.trace_count, 'conversation')}. {where}"
    sentences = [
        equal_run_in_words(job, "new=true") if started.existing else f"Run {job.id} has begun.",
        *start_in_words(job),
        at_the_end(job.install),
        *([started.warning] if started.warning else []),
        where,
    ]
    return " ".join(sentences)


def _message(backend: Backend, job: Job) -> str:
    if job.status.is_final:
        return f"{job.status.capitalize()}. {next_step(job)}"
    if isinstance(job, Run) and job.reflections_waiting:
        return next_for_run(job)
    if words := job.stalled or job.as_seen:
        return words
    waits = job.status is JobStatus.QUEUED
    here = backend.at("local")
    places = queue_places(here.list_reward_models(), here.list_runs()) if waits else {}
    estimate = None if job.progress is None else job.progress.estimate_seconds
    left = "" if waits or estimate is None else f", about {duration(estimate)} left"
    return f"{where_it_stands(job, places) or job.status.capitalize()}{left}"


def _result(job: Job) -> CallToolResult | None:
    if job.status is JobStatus.FAILED:
        said = f"{job.id} failed: {job.reason or 'its log says why.'} {next_step(job)}"
        return CallToolResult(content=[TextContent(type="text", text=said)], is_error=True)
    if job.status is not JobStatus.SUCCEEDED:
        return None
    ended = StartResult.ended(job) if isinstance(job, Run) else TrainResult.ended(job)
    text = TextContent(type="text", text=ended.model_dump_json(indent=2))
    return CallToolResult(content=[text], structured_content=ended.model_dump(mode="json"))
