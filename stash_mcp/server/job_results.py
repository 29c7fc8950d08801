"""What the tools for trainings and runs return."""

from collections.abc import Sequence
from datetime import datetime
from typing import Literal

from pydantic import Field

from stash_mcp.models import (
    Event,
    Heldout,
    JobStatus,
    Plan,
    Progress,
    RewardModel,
    Run,
    TrainMetrics,
    Usage,
)
from stash_mcp.server.jobs import Job
from stash_mcp.server.results import Result
from stash_mcp.server.shortening import fit, next_offset, shorten
from stash_mcp.server.wording import (
    elapsed_seconds,
    next_for_run,
    next_for_training,
    plan_in_words,
)

EVENTS_SHOWN = 12
EVENT_CHARACTERS = 300
REASON_CHARACTERS = 1000
ERROR_CHARACTERS = 2000
_MODEL_CHARACTERS = 200


class TrainResult(Result):
    reward_model_id: str
    status: JobStatus
    base_model: str
    traces: int
    pairs: int | None = None
    next: str

    @classmethod
    def of(cls, model: RewardModel) -> "TrainResult":
        return cls(
            reward_model_id=model.id,
            status=model.status,
            base_model=shorten(model.base_model, _MODEL_CHARACTERS),
            traces=model.trace_count,
            pairs=model.num_pairs,
            next=next_for_training(model),
        )


class ModelRow(Result):
    reward_model_id: str
    name: str
    status: JobStatus
    base_model: str
    traces: int
    pairs: int | None = None
    heldout_accuracy: float | None = Field(
        None, description="Share of held-out pairs ranked right; 0.5 is chance"
    )
    heldout_pairs: int | None = None
    progress: str | None = None
    reason: str | None = Field(None, description="Why it failed")
    created_at: datetime

    @classmethod
    def of(cls, model: RewardModel) -> "ModelRow":
        metrics = model.metrics
        return cls(
            reward_model_id=model.id,
            name=shorten(model.name, _MODEL_CHARACTERS),
            status=model.status,
            base_model=shorten(model.base_model, _MODEL_CHARACTERS),
            traces=model.trace_count,
            pairs=model.num_pairs,
            heldout_accuracy=None if metrics is None else _rounded(metrics.eval_accuracy),
            heldout_pairs=None if metrics is None else metrics.eval_pairs,
            progress=None if model.status.is_final else _progress(model.progress),
            reason=_short(model.reason, REASON_CHARACTERS),
            created_at=model.created_at,
        )


class ModelList(Result):
    reward_models: tuple[ModelRow, ...]
    total: int
    next_offset: int | None = Field(None, description="offset of the next page, if there is one")

    @classmethod
    def of(cls, models: Sequence[RewardModel], limit: int, offset: int) -> "ModelList":
        rows = fit(ModelRow.of(model) for model in models[offset : offset + limit])
        following = next_offset(offset, len(rows), len(models))
        return cls(reward_models=rows, total=len(models), next_offset=following)


class StartResult(Result):
    run_id: str
    status: JobStatus
    plan_in_words: tuple[str, ...]
    plan: Plan
    next: str

    @classmethod
    def of(cls, run: Run) -> "StartResult":
        return cls(
            run_id=run.id,
            status=run.status,
            plan_in_words=tuple(plan_in_words(run.plan, run.request.reflection_model)),
            plan=run.plan,
            next=next_for_run(run),
        )


class RunRow(Result):
    run_id: str
    status: JobStatus
    skill_name: str | None = None
    reward_model_id: str
    task_model: str
    reflection_model: str
    seed_score: float | None = None
    best_score: float | None = None
    candidates: int
    progress: str | None = None
    reason: str | None = Field(None, description="Why it failed")
    created_at: datetime

    @classmethod
    def of(cls, run: Run) -> "RunRow":
        return cls(
            run_id=run.id,
            status=run.status,
            skill_name=run.skill_name,
            reward_model_id=run.request.reward_model_id,
            task_model=shorten(run.request.task_model, _MODEL_CHARACTERS),
            reflection_model=shorten(run.request.reflection_model, _MODEL_CHARACTERS),
            seed_score=_rounded(run.seed_score),
            best_score=_rounded(run.best_score),
            candidates=run.progress.candidates,
            progress=None if run.status.is_final else _progress(run.progress),
            reason=_short(run.reason, REASON_CHARACTERS),
            created_at=run.created_at,
        )


class RunList(Result):
    runs: tuple[RunRow, ...]
    total: int
    next_offset: int | None = Field(None, description="offset of the next page, if there is one")

    @classmethod
    def of(cls, runs: Sequence[Run], limit: int, offset: int) -> "RunList":
        rows = fit(RunRow.of(run) for run in runs[offset : offset + limit])
        following = next_offset(offset, len(rows), len(runs))
        return cls(runs=rows, total=len(runs), next_offset=following)


class EventRow(Result):
    number: int
    at: datetime
    message: str


class RunFacts(Result):
    reward_model_id: str
    task_model: str
    reflection_model: str
    skill_name: str | None = None
    skill_description: str | None = None
    metric_calls: int
    max_metric_calls: int
    proposals: int
    refused_proposals: int
    candidates: int
    seed_score: float | None = None
    best_score: float | None = None
    best_candidate: int | None = None
    heldout: Heldout | None = Field(
        None, description="Seed and best on conversations that the optimisation never saw"
    )
    task_usage: Usage
    reflection_usage: Usage

    @classmethod
    def of(cls, run: Run) -> "RunFacts":
        request, progress = run.request, run.progress
        return cls(
            reward_model_id=request.reward_model_id,
            task_model=shorten(request.task_model, _MODEL_CHARACTERS),
            reflection_model=shorten(request.reflection_model, _MODEL_CHARACTERS),
            skill_name=run.skill_name,
            skill_description=run.skill_description,
            metric_calls=progress.metric_calls,
            max_metric_calls=run.plan.max_metric_calls,
            proposals=progress.proposals,
            refused_proposals=progress.refused_proposals,
            candidates=progress.candidates,
            seed_score=_rounded(_known(run.seed_score, progress.seed_score)),
            best_score=_rounded(_known(run.best_score, progress.best_score)),
            best_candidate=run.best_candidate,
            heldout=run.heldout,
            task_usage=progress.task_usage,
            reflection_usage=progress.reflection_usage,
        )


class TrainingFacts(Result):
    name: str
    base_model: str
    traces: int
    pairs: int | None = None
    metrics: TrainMetrics | None = None

    @classmethod
    def of(cls, model: RewardModel) -> "TrainingFacts":
        return cls(
            name=shorten(model.name, _MODEL_CHARACTERS),
            base_model=shorten(model.base_model, _MODEL_CHARACTERS),
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
    verdict: str | None = Field(None, description="Whether the skill helped")
    next: str
    phase: str
    done: int = Field(description="Of total, in this phase")
    total: int
    elapsed_seconds: int | None = None
    estimate_seconds: int | None = Field(None, description="Rough time left")
    run: RunFacts | None = None
    training: TrainingFacts | None = None
    events: tuple[EventRow, ...] = Field(description="Oldest first")
    last_event: int = Field(description="Pass as after_event to be told only of newer ones")
    error: str | None = Field(None, description="The end of a failed job's log")

    @classmethod
    def of(cls, job: Job, events: Sequence[Event], last_event: int, now: datetime) -> "JobState":
        run = job if isinstance(job, Run) else None
        training = None if isinstance(job, Run) else job
        estimate = None if job.status.is_final else job.progress.estimate_seconds
        return cls(
            id=job.id,
            kind="training" if run is None else "run",
            status=job.status,
            reason=_short(job.reason, REASON_CHARACTERS),
            verdict=None if run is None else run.verdict,
            next=next_for_run(job) if isinstance(job, Run) else next_for_training(job),
            phase=job.progress.phase,
            done=job.progress.done,
            total=job.progress.total,
            elapsed_seconds=elapsed_seconds(job, now),
            estimate_seconds=None if estimate is None else round(estimate),
            run=None if run is None else RunFacts.of(run),
            training=None if training is None else TrainingFacts.of(training),
            events=tuple(_event(event) for event in events[-EVENTS_SHOWN:]),
            last_event=last_event,
            error=_short(job.error, ERROR_CHARACTERS),
        )


def _event(event: Event) -> EventRow:
    message = shorten(event.message, EVENT_CHARACTERS)
    return EventRow(number=event.number, at=event.at, message=message)


def _progress(progress: Progress) -> str:
    return (
        f"{progress.phase} {progress.done}/{progress.total}" if progress.total else progress.phase
    )


def _known(final: float | None, so_far: float | None) -> float | None:
    return so_far if final is None else final


def _rounded(score: float | None) -> float | None:
    return None if score is None else round(score, 4)


def _short(text: str | None, limit: int) -> str | None:
    return None if text is None else shorten(text, limit)
