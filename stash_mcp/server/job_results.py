"""What the tool that follows a run or a training returns."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Literal

from pydantic import Field

from stash_mcp.models import (
    BUILTIN_REFLECTION,
    Event,
    Heldout,
    JobStatus,
    RewardModel,
    Run,
    StopReason,
    TrainMetrics,
    Usage,
)
from stash_mcp.server.jobs import Job
from stash_mcp.server.money import spent
from stash_mcp.server.results import Part, Result
from stash_mcp.server.shortening import (
    MODEL_CHARACTERS,
    REASON_CHARACTERS,
    brief,
    rounded,
    shorten,
)
from stash_mcp.server.wording import elapsed_seconds, next_step, silent_seconds, start_in_words

EVENTS_SHOWN = 12
EVENT_CHARACTERS = 300
ERROR_CHARACTERS = 2000
_COUNTED = {"metric_calls", "proposals", "refused_proposals", "candidates"}


class EventRow(Part):
    number: int
    at: datetime
    message: str


class Spent(Part):
    """Of one model."""

    calls: int
    remembered: int = Field(description="Answers paid for before; not among calls")
    prompt_tokens: int
    completion_tokens: int
    cost_usd: float | None = Field(None, description="Left out where the price is not known")
    in_words: str

    @classmethod
    def of(cls, usage: Usage) -> "Spent":
        return cls(**usage.model_dump(), in_words=spent(usage))


class RunFacts(Part):
    stop_reason: StopReason | None = Field(None, description="Why the search ended")
    partial: bool = Field(description="Stopped early, with the candidates until then")
    reward_model_id: str
    task_model: str
    reflection_model: str
    skill_name: str | None = None
    skill_description: str | None = None
    plan_in_words: tuple[str, ...] | None = Field(None, description="While it is not over")
    metric_calls: int | None = None
    max_metric_calls: int
    proposals: int | None = None
    refused_proposals: int | None = None
    candidates: int | None = None
    seed_score: float | None = None
    best_score: float | None = None
    best_candidate: int | None = None
    score_kind: str | None = None
    installing: str | None = Field(None, description="What came of it at the end")
    heldout: Heldout | None = Field(
        None,
        description="Seed and best on conversations that the optimisation never saw; low and high "
        "bound the gain's 95 % interval",
    )
    task_usage: Spent | None = None
    reflections_waiting: tuple[int, ...] | None = Field(None, description="For you to answer")
    reflection_usage: Spent | None = Field(None, description="Left out for builtin/comments")

    @classmethod
    def of(cls, run: Run) -> "RunFacts":
        request = run.request
        return cls(
            **_counts(run),
            stop_reason=run.stop_reason,
            partial=run.partial,
            reward_model_id=request.reward_model_id,
            task_model=shorten(request.task_model, MODEL_CHARACTERS),
            reflection_model=shorten(request.reflection_model, MODEL_CHARACTERS),
            skill_name=run.skill_name,
            skill_description=run.skill_description,
            plan_in_words=None if run.status.is_final else tuple(start_in_words(run)),
            max_metric_calls=request.max_metric_calls,
            best_candidate=run.best_candidate,
            score_kind=run.score_kind,
            installing=brief(run.install_note, REASON_CHARACTERS),
            heldout=run.heldout,
            reflections_waiting=run.reflections_waiting or None,
        )


class TrainingFacts(Part):
    name: str
    base_model: str
    traces: int
    pairs: int | None = None
    metrics: TrainMetrics | None = None

    @classmethod
    def of(cls, model: RewardModel) -> "TrainingFacts":
        return cls(
            name=shorten(model.name, MODEL_CHARACTERS),
            base_model=shorten(model.base_model, MODEL_CHARACTERS),
            traces=model.trace_count,
            pairs=model.num_pairs,
            metrics=model.metrics,
        )


class JobState(Result):
    """A run or a training: where it stands, and what to do next."""

    id: str
    kind: Literal["run", "training"]
    status: JobStatus
    reason: str | None = Field(None, description="Why it failed")
    stalled: str | None = Field(None, description="Why no worker comes to it")
    as_seen: str | None = Field(None, description="Why it is not as of now")
    verdict: str | None = Field(None, description="Whether the skill helped")
    next: str
    phase: str | None = None
    done: int | None = Field(None, description="Of total, in this phase")
    total: int | None = None
    elapsed_seconds: int | None = None
    estimate_seconds: int | None = Field(None, description="Rough time left")
    last_sign_of_life_seconds: int | None = Field(None, description="Ago, while it runs")
    run: RunFacts | None = None
    training: TrainingFacts | None = None
    events: tuple[EventRow, ...] = Field(description="Oldest first")
    last_event: int = Field(description="after_event of the next call")
    error: str | None = Field(None, description="The end of a failed job's log")

    @classmethod
    def of(cls, job: Job, events: Sequence[Event], last_event: int, now: datetime) -> "JobState":
        run = job if isinstance(job, Run) else None
        training = None if isinstance(job, Run) else job
        now_at = job.progress
        is_running = job.status is JobStatus.RUNNING
        counted = now_at if now_at and is_running and now_at.total else None
        estimate = now_at.estimate_seconds if now_at and is_running else None
        return cls(
            id=job.id,
            kind="training" if run is None else "run",
            status=job.status,
            reason=brief(job.reason, REASON_CHARACTERS),
            stalled=brief(job.stalled, REASON_CHARACTERS),
            as_seen=brief(job.as_seen, REASON_CHARACTERS),
            verdict=None if run is None else run.verdict,
            next=next_step(job),
            phase=_phase(job),
            done=None if counted is None else counted.done,
            total=None if counted is None else counted.total,
            elapsed_seconds=elapsed_seconds(job, now),
            estimate_seconds=None if estimate is None else round(estimate),
            last_sign_of_life_seconds=silent_seconds(job, now),
            run=None if run is None else RunFacts.of(run),
            training=None if training is None else TrainingFacts.of(training),
            events=tuple(_event(event) for event in events[-EVENTS_SHOWN:]),
            last_event=last_event,
            error=brief(job.error, ERROR_CHARACTERS),
        )


def _phase(job: Job) -> str | None:
    """What a run did before it was put back into the queue is not what it does."""
    if job.progress is None:
        return None
    return "waiting" if job.status is JobStatus.QUEUED else job.progress.phase


def _counts(run: Run) -> dict[str, Any]:
    """What is known of the way so far: at Stash the scores at its end."""
    progress = run.progress
    if progress is None:
        return {"seed_score": rounded(run.seed_score), "best_score": rounded(run.best_score)}
    reflects = run.request.reflection_model != BUILTIN_REFLECTION
    return {
        **progress.model_dump(include=_COUNTED),
        "seed_score": rounded(_known(run.seed_score, progress.seed_score)),
        "best_score": rounded(_known(run.best_score, progress.best_score)),
        "task_usage": Spent.of(progress.task_usage),
        "reflection_usage": Spent.of(progress.reflection_usage) if reflects else None,
    }


def _event(event: Event) -> EventRow:
    message = shorten(event.message, EVENT_CHARACTERS)
    return EventRow(number=event.number, at=event.at, message=message)


def _known(final: float | None, so_far: float | None) -> float | None:
    return so_far if final is None else final
