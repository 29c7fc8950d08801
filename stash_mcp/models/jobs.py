"""The queue: trainings and runs, which the worker does one at a time, and where they stand."""

from datetime import datetime
from enum import StrEnum
from typing import Any

from stash_mcp.models.base import Frozen
from stash_mcp.models.skills import InstallState, InstallWish


class JobStatus(StrEnum):
    QUEUED = "queued"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"

    @property
    def is_final(self) -> bool:
        return self in (JobStatus.SUCCEEDED, JobStatus.FAILED, JobStatus.CANCELLED)


class JobKind(StrEnum):
    TRAIN = "train"
    GEPA = "gepa"


class Usage(Frozen):
    """Calls answered by one model and what they took; cost in US dollars, null if unpriced."""

    calls: int = 0
    remembered: int = 0
    """Answers that were paid for before and cost nothing now; not among `calls`."""
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost_usd: float | None = None


class Progress(Frozen):
    """Where a job stands; every count is 0 until it is known."""

    phase: str = "waiting"
    done: int = 0
    total: int = 0
    """Of the present phase: examples of a batch, or training steps."""
    metric_calls: int = 0
    max_metric_calls: int = 0
    proposals: int = 0
    refused_proposals: int = 0
    candidates: int = 0
    seed_score: float | None = None
    best_score: float | None = None
    estimate_seconds: float | None = None
    """Rough time left, from the pace so far."""
    active_seconds: float = 0.0
    """Time that workers have spent on it."""
    task_usage: Usage = Usage()
    reflection_usage: Usage = Usage()


class Job(Frozen):
    """One row of the queue: a training or a run."""

    id: str
    kind: JobKind
    name: str
    status: JobStatus
    request: dict[str, Any]
    plan: dict[str, Any]
    progress: Progress
    result: dict[str, Any] | None
    reason: str | None
    error: str | None
    attempts: int
    deaths: int
    """Of workers, in a row at `death_place`."""
    death_place: str | None
    needs: tuple[str, ...]
    """Names of variables that its starter's environment had and its worker's must have."""
    go: int
    """Counts from 1; a resume begins the next one, a kill does not."""
    parked: bool = False
    """Running, but no worker takes it until the agent has answered its reflections."""
    install: InstallWish
    install_state: InstallState
    install_note: str | None
    heartbeat_at: datetime | None
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None


class Event(Frozen):
    """One line of a job's history."""

    number: int
    at: datetime
    message: str
