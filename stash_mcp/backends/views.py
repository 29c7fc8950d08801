"""Jobs of the library as the reward models and runs that people see."""

from stash_mcp.models import (
    Candidate,
    Job,
    JobStatus,
    Plan,
    RewardModel,
    Run,
    RunRequest,
    RunResult,
    StopReason,
    TrainMetrics,
    TrainRequest,
)


def reward_model(job: Job) -> RewardModel:
    request = TrainRequest.model_validate(job.request)
    metrics = (job.result or {}).get("metrics")
    parsed = None if metrics is None else TrainMetrics.model_validate(metrics)
    return RewardModel(
        id=job.id,
        name=job.name,
        base_model=request.base_model,
        status=job.status,
        epochs=request.epochs,
        max_pairs=request.max_pairs,
        trace_count=len(request.trace_ids),
        num_pairs=None if request.imported_from else request.num_pairs,
        metrics=parsed,
        reason=job.reason,
        error=job.error,
        imported_from=request.imported_from,
        heartbeat_at=job.heartbeat_at,
        created_at=job.created_at,
        started_at=job.started_at,
        finished_at=job.finished_at,
        progress=job.progress,
    )


def without_skill(run: Run) -> Run:
    """A run whose skill was installed when it ended, and is nowhere any more."""
    note = (
        f"The skill of run {run.id} was installed and has been taken away since; install_skill "
        f"(stash-skills install {run.id}) brings it back."
    )
    return run.model_copy(update={"install_state": "staged", "install_note": note})


def run(job: Job, candidates: list[Candidate], reflections: tuple[int, ...] = ()) -> Run:
    """candidates: those scored so far; they give the scores of a run that has no result yet.
    reflections: numbers of those that are not answered."""
    result = None if job.result is None else RunResult.model_validate(job.result)
    request = RunRequest.model_validate(job.request)
    best = max(candidates, key=lambda candidate: candidate.score, default=None)
    return Run(
        id=job.id,
        status=job.status,
        request=request,
        plan=Plan.model_validate(job.plan),
        progress=job.progress,
        skill_name=result.skill_name if result else request.skill_name,
        skill_description=result.skill_description if result else request.skill_description,
        seed_score=candidates[0].score if candidates else None,
        best_score=best.score if best else None,
        best_candidate=best.number if best else None,
        heldout=result.heldout if result else None,
        verdict=result.verdict if result else None,
        stop_reason=_stop_reason(job, result),
        partial=job.status is JobStatus.CANCELLED and bool(candidates),
        heartbeat_at=job.heartbeat_at,
        install=job.install,
        install_state=job.install_state,
        install_note=job.install_note,
        reflections_waiting=() if job.status.is_final else reflections,
        reason=job.reason,
        error=job.error,
        created_at=job.created_at,
        started_at=job.started_at,
        finished_at=job.finished_at,
    )


def _stop_reason(job: Job, result: RunResult | None) -> StopReason | None:
    if result is not None:
        return result.stop_reason
    return "cancelled" if job.status is JobStatus.CANCELLED else None
