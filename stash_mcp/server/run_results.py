"""What the tools that start, stop, carry on and list runs return."""

from collections.abc import Mapping, Sequence
from datetime import datetime

from pydantic import Field

from stash_mcp.backends.base import StartedRun
from stash_mcp.models import JobStatus, Plan, Run
from stash_mcp.server.jobs import Stopped
from stash_mcp.server.results import Part, Result
from stash_mcp.server.shortening import (
    MODEL_CHARACTERS,
    REASON_CHARACTERS,
    brief,
    fit,
    next_offset,
    rounded,
    shorten,
)
from stash_mcp.server.wording import (
    at_the_end,
    ending_of_run,
    equal_run_in_words,
    next_for_run,
    next_step,
    start_in_words,
    where_it_stands,
)


class StartResult(Result):
    run_id: str
    status: JobStatus
    existing: bool | None = Field(None, description="An equal run was there; nothing was started")
    plan_in_words: tuple[str, ...]
    plan: Plan | None = Field(None, description="Left out at Stash")
    at_the_end: str = Field(description="What happens to the skill then; tell the person")
    outcome: str | None = Field(None, description="How it ended, where the answer waited for that")
    warning: str | None = Field(None, description="Tell the person first")
    next: str

    @classmethod
    def of(cls, started: StartedRun) -> "StartResult":
        run = started.run
        note = f"{equal_run_in_words(run, 'new=true')} " if started.existing else ""
        return cls(
            run_id=run.id,
            status=run.status,
            existing=started.existing,
            plan_in_words=tuple(start_in_words(run)),
            plan=run.plan,
            at_the_end=at_the_end(run.install),
            warning=" ".join(started.warnings) or None,
            next=note + next_for_run(run),
        )

    @classmethod
    def ended(cls, run: Run) -> "StartResult":
        """The same answer once the run has succeeded."""
        return cls(
            run_id=run.id,
            status=run.status,
            plan_in_words=tuple(start_in_words(run)),
            plan=run.plan,
            at_the_end=at_the_end(run.install),
            outcome=ending_of_run(run),
            next=next_for_run(run),
        )


class JobChange(Result):
    """What stopping a job, or carrying it on, did."""

    id: str
    status: JobStatus
    partial: bool | None = Field(None, description="Of a run: it has usable candidates")
    outcome: str
    next: str

    @classmethod
    def stopped(cls, stopped: Stopped) -> "JobChange":
        job = stopped.job
        return cls(
            id=job.id,
            status=job.status,
            partial=job.partial if isinstance(job, Run) else None,
            outcome=stopped.in_words,
            next=next_step(job),
        )

    @classmethod
    def resumed(cls, run: Run) -> "JobChange":
        return cls(
            id=run.id,
            status=run.status,
            outcome="It is in the queue again and will go the same way as before; what was paid "
            "for is not paid again.",
            next=next_for_run(run),
        )


class RunRow(Part):
    run_id: str
    status: JobStatus
    skill_name: str | None = None
    reward_model_id: str
    task_model: str
    reflection_model: str
    seed_score: float | None = None
    best_score: float | None = None
    score_kind: str | None = None
    candidates: int | None = None
    progress: str | None = None
    as_seen: str | None = Field(None, description="Why it is not as of now")
    reason: str | None = Field(None, description="Why it failed")
    created_at: datetime

    @classmethod
    def of(cls, run: Run, places: Mapping[str, int]) -> "RunRow":
        return cls(
            run_id=run.id,
            status=run.status,
            skill_name=run.skill_name,
            reward_model_id=run.request.reward_model_id,
            task_model=shorten(run.request.task_model, MODEL_CHARACTERS),
            reflection_model=shorten(run.request.reflection_model, MODEL_CHARACTERS),
            seed_score=rounded(run.seed_score),
            best_score=rounded(run.best_score),
            score_kind=run.score_kind,
            candidates=None if run.progress is None else run.progress.candidates,
            progress=where_it_stands(run, places),
            as_seen=brief(run.as_seen, REASON_CHARACTERS),
            reason=brief(run.reason, REASON_CHARACTERS),
            created_at=run.created_at,
        )


class RunList(Result):
    runs: tuple[RunRow, ...]
    total: int
    next_offset: int | None = None
    missing: str | None = Field(None, description="Why Stash's are missing")

    @classmethod
    def of(
        cls,
        runs: Sequence[Run],
        places: Mapping[str, int],
        limit: int,
        offset: int,
        missing: str | None,
    ) -> "RunList":
        rows = fit(RunRow.of(run, places) for run in runs[offset : offset + limit])
        following = next_offset(offset, len(rows), len(runs))
        return cls(runs=rows, total=len(runs), next_offset=following, missing=missing)
