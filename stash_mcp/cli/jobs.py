"""What `train`, `run` and `status` share: waiting for a job and showing what came of it."""

from typing import Annotated

import typer

from stash_mcp.backends.base import Backend
from stash_mcp.cli.following import facts, follow
from stash_mcp.cli.printing import print_json, print_text, score
from stash_mcp.cli.session import Session
from stash_mcp.models import Heldout, JobStatus, RewardModel, Run, TrainMetrics, Usage
from stash_mcp.server.jobs import Job
from stash_mcp.server.wording import count, duration, elapsed_seconds

NoWait = Annotated[
    bool, typer.Option("--no-wait", "--detach", help="Return at once; look with `status`.")
]
TracePatterns = Annotated[
    list[str] | None,
    typer.Option(metavar="PATTERN", help="Only these ids; * matches. May be given again."),
]


def finish(session: Session, job: Job, *, wait: bool, as_json: bool) -> None:
    """Follow the job if wanted and show it; exits with 1 where it did not succeed."""
    if wait:
        job = follow(session, job.id)
    show(session, job, as_json=as_json)
    if job.status in (JobStatus.FAILED, JobStatus.CANCELLED):
        raise typer.Exit(1)


def show(session: Session, job: Job, *, as_json: bool) -> None:
    if as_json:
        print_json(session.out, job_as_json(session.backend, job))
    elif isinstance(job, Run):
        print_run(session, job)
    else:
        print_model(session, job)


def job_as_json(backend: Backend, job: Job) -> dict[str, object]:
    """The job with its kind and its events."""
    return {
        "kind": "run" if isinstance(job, Run) else "training",
        **job.model_dump(mode="json"),
        "events": [event.model_dump(mode="json") for event in backend.events(job.id)],
    }


def print_run(session: Session, run: Run) -> None:
    name = f" ({run.skill_name})" if run.skill_name else ""
    print_text(session.out, f"Run {run.id}{name}: {_state(session, run)}", style="bold")
    if run.reason:
        print_text(session.out, run.reason)
    if run.verdict:
        print_text(session.out, run.verdict)
    if run.heldout is not None:
        print_text(session.out, _heldout(run.heldout))
    print_text(
        session.out,
        f"Seed {score(run.seed_score)}, best {score(run.best_score)} "
        f"(candidate {run.best_candidate}), on the conversations optimised on."
        if run.best_candidate is not None
        else "No candidate is scored yet.",
    )
    for model, usage in (
        (run.request.task_model, run.progress.task_usage),
        (run.request.reflection_model, run.progress.reflection_usage),
    ):
        if usage.calls:
            print_text(session.out, f"{model}: {_spent(usage)}")
    print_text(session.err, f"Next: {_after_run(run)}", style="dim")


def print_model(session: Session, model: RewardModel) -> None:
    print_text(
        session.out,
        f"Reward model {model.id} ({model.name}): {_state(session, model)}",
        style="bold",
    )
    if model.reason:
        print_text(session.out, model.reason)
    if model.metrics is not None:
        print_text(session.out, _trained(model.metrics))
    print_text(session.err, f"Next: {_after_training(model)}", style="dim")


def _state(session: Session, job: Job) -> str:
    words: list[str] = [job.status]
    elapsed = elapsed_seconds(job, session.clock())
    if elapsed is not None:
        words.append(f"after {duration(elapsed)}")
    if not job.status.is_final:
        words.append(f"- {job.progress.phase} {facts(job)}".rstrip())
    return " ".join(words)


def _heldout(heldout: Heldout) -> str:
    return (
        f"On {count(heldout.examples, 'held-out conversation')}: seed {score(heldout.seed_score)}, "
        f"best {score(heldout.best_score)}, gain {heldout.gain:+.3f} "
        f"(95 % interval {heldout.low:+.3f} to {heldout.high:+.3f})."
    )


def _spent(usage: Usage) -> str:
    tokens = f"{usage.prompt_tokens:,} tokens in, {usage.completion_tokens:,} out"
    cost = "" if usage.cost_usd is None else f", ${usage.cost_usd:.4f}"
    return f"{count(usage.calls, 'call')}, {tokens}{cost}"


def _trained(metrics: TrainMetrics) -> str:
    if metrics.eval_accuracy is None:
        reason = metrics.eval_accuracy_reason or "no pairs could be held out"
        accuracy = f"no held-out accuracy: {reason}"
    else:
        accuracy = (
            f"ranks {metrics.eval_accuracy:.0%} of {count(metrics.eval_pairs, 'held-out pair')} "
            "right (50 % is chance)"
        )
    return (
        f"Trained on {count(metrics.train_pairs, 'pair')} in {duration(metrics.seconds)} "
        f"on {metrics.device}; {accuracy}."
    )


def _after_run(run: Run) -> str:
    match run.status:
        case JobStatus.SUCCEEDED:
            return f"stash-skills candidates {run.id} --diff, stash-skills install {run.id}"
        case JobStatus.QUEUED | JobStatus.RUNNING:
            return f"stash-skills status {run.id} --follow"
        case JobStatus.FAILED | JobStatus.CANCELLED:
            return "mend what the reason names and start again with stash-skills run"


def _after_training(model: RewardModel) -> str:
    match model.status:
        case JobStatus.SUCCEEDED:
            return f"stash-skills run --reward-model {model.id} --task-model MODEL"
        case JobStatus.QUEUED | JobStatus.RUNNING:
            return f"stash-skills status {model.id} --follow"
        case JobStatus.FAILED | JobStatus.CANCELLED:
            return "mend what the reason names and train again with stash-skills train"
