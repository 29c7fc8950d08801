"""What `train`, `run`, `resume`, `status` and `cancel` share: waiting for a job, and showing it."""

from typing import Annotated

import typer

from stash_mcp.backends.base import Backend, Side, StartedRun
from stash_mcp.cli.following import POLL_SECONDS, facts, follow
from stash_mcp.cli.printing import print_json, print_text, score
from stash_mcp.cli.session import Session
from stash_mcp.models import (
    BUILTIN_REFLECTION,
    Heldout,
    JobStatus,
    RewardModel,
    Run,
    TrainMetrics,
    Usage,
)
from stash_mcp.server.counting import count, duration
from stash_mcp.server.jobs import Job, queue_places
from stash_mcp.server.money import spent
from stash_mcp.server.wording import (
    AT_STASH,
    PARTIAL,
    accuracy_in_words,
    elapsed_seconds,
    is_no_gain,
    place_in_words,
    reflections_in_words,
    silent_seconds,
    stop_in_words,
)

INSTALLING_POLLS = 10
JobId = Annotated[str, typer.Argument(metavar="ID", help="Of a run, or of a reward model.")]
NoWait = Annotated[
    bool, typer.Option("--no-wait", "--detach", help="Return at once; look with `status`.")
]
TracePatterns = Annotated[
    list[str] | None,
    typer.Option(metavar="PATTERN", help="Only these ids; * matches. May be given again."),
]


def finish(session: Session, job: Job, *, wait: bool, as_json: bool, **facts: object) -> None:
    """Follow the job if wanted and show it; exits with 1 where it did not succeed.

    facts: said beside the job in JSON.
    """
    if wait:
        job = _installed(session, follow(session, job.id))
    show(session, job, as_json=as_json, **facts)
    if job.status in (JobStatus.FAILED, JobStatus.CANCELLED):
        raise typer.Exit(1)


def _installed(session: Session, job: Job) -> Job:
    """The job once its skill is installed or staged, which follows its end within moments."""
    for _ in range(INSTALLING_POLLS):
        if not isinstance(job, Run) or job.status is not JobStatus.SUCCEEDED:
            return job
        if job.install_state != "waiting" or job.install_note:
            return job
        session.backend.reconcile()
        job = session.backend.get_run(job.id)
        if job.install_state == "waiting":
            session.sleep(POLL_SECONDS)
    return job


def show(session: Session, job: Job, *, as_json: bool, **facts: object) -> None:
    if as_json:
        print_json(session.out, {**job_as_json(session.backend, job), **facts})
    elif isinstance(job, Run):
        print_run(session, job)
    else:
        print_model(session, job)


def print_warnings(session: Session, started: StartedRun) -> None:
    for warning in started.warnings:
        print_text(session.err, f"Warning: {warning}", style="yellow")


def job_as_json(backend: Backend, job: Job) -> dict[str, object]:
    """The job with its kind and its events."""
    return {
        "kind": "run" if isinstance(job, Run) else "training",
        **plain(job),
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
    if run.partial:
        print_text(session.out, PARTIAL)
    elif run.stop_reason is not None:
        print_text(session.out, stop_in_words(run.stop_reason))
    print_text(
        session.out,
        f"Seed {score(run.seed_score)}, best {score(run.best_score)} "
        f"(candidate {run.best_candidate}), in-sample: on the conversations optimised on."
        if run.best_candidate is not None
        else "No candidate is scored yet.",
    )
    for model, usage in _usages(run):
        print_text(session.out, f"{model}: {spent(usage)}")
    if run.install_note:
        print_text(session.out, run.install_note)
    _print_stalled(session, run)
    _print_sign_of_life(session, run)
    print_text(session.err, f"Next: {_after_run(run)}", style="dim")


def _usages(run: Run) -> list[tuple[str, Usage]]:
    """The models of the run that were asked, or answered from what was paid for before."""
    if run.progress is None:
        return []
    models = [(run.request.task_model, run.progress.task_usage)]
    if run.request.reflection_model != BUILTIN_REFLECTION:
        models.append((run.request.reflection_model, run.progress.reflection_usage))
    return [(model, usage) for model, usage in models if usage.calls or usage.remembered]


def _print_stalled(session: Session, job: Job) -> None:
    for words in (job.stalled, job.as_seen):
        if words:
            print_text(session.out, words)


def _print_sign_of_life(session: Session, job: Job) -> None:
    seconds = silent_seconds(job, session.clock())
    if seconds is not None:
        print_text(session.out, f"Last sign of life of its worker: {duration(seconds)} ago.")


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
    _print_stalled(session, model)
    _print_sign_of_life(session, model)
    print_text(session.err, f"Next: {_after_training(model)}", style="dim")


def _state(session: Session, job: Job) -> str:
    words: list[str] = [job.status]
    elapsed = elapsed_seconds(job, session.clock())
    if elapsed is not None:
        words.append(f"after {duration(elapsed)}")
    if job.status is JobStatus.RUNNING:
        phase = AT_STASH if job.progress is None else job.progress.phase
        words.append(f"- {phase} {facts(job)}".rstrip())
    elif place := places(session.backend).get(job.id):
        words.append(f"- {place_in_words(place)}")
    return " ".join(words)


def say_unreached(session: Session, side: Side) -> None:
    """Why its last list came without Stash's, or without some of them, on standard error."""
    if missing := side.unreached():
        print_text(session.err, missing)


def places(backend: Backend) -> dict[str, int]:
    """The place in the queue of every job that waits."""
    here = backend.at("local")
    return queue_places(here.list_reward_models(), here.list_runs())


def in_queue(job: Job, queue: dict[str, int]) -> dict[str, object]:
    """The job as JSON, with its place in the queue or null."""
    return {**plain(job), "queue_place": queue.get(job.id)}


def plain(job: Job) -> dict[str, object]:
    """The job as JSON; a run with what kind of scores it has."""
    kind = {"score_kind": job.score_kind} if isinstance(job, Run) else {}
    return {**job.model_dump(mode="json"), **kind}


def status_word(job: Job, queue: dict[str, int]) -> str:
    """`queued, place 2 in the queue` or `running, waits for 1 reflection`; else the status."""
    place = queue.get(job.id)
    if job.as_seen:
        return f"{job.status}, as last seen"
    if isinstance(job, Run) and job.reflections_waiting:
        return f"{job.status}, {reflections_in_words(job)}"
    return job.status if place is None else f"{job.status}, {place_in_words(place)}"


def _heldout(heldout: Heldout) -> str:
    return (
        f"On {count(heldout.examples, 'held-out conversation')}: seed {score(heldout.seed_score)}, "
        f"best {score(heldout.best_score)}, gain {heldout.gain:+.3f} "
        f"(95 % interval {heldout.low:+.3f} to {heldout.high:+.3f})."
    )


def _trained(metrics: TrainMetrics) -> str:
    accuracy = accuracy_in_words(metrics)
    return (
        f"Trained on {count(metrics.train_pairs, 'pair')} in {duration(metrics.seconds)} "
        f"on {metrics.device}; {accuracy}."
    )


def _after_run(run: Run) -> str:
    match run.status:
        case JobStatus.SUCCEEDED if is_no_gain(run.verdict):
            return f"nothing to install; stash-skills candidates {run.id} shows what was tried"
        case JobStatus.SUCCEEDED if run.install_state == "installed":
            return f"stash-skills candidates {run.id} --diff, stash-skills installed"
        case JobStatus.SUCCEEDED:
            return f"stash-skills candidates {run.id} --diff, stash-skills install {run.id}"
        case JobStatus.QUEUED | JobStatus.RUNNING if run.reflections_waiting:
            return f"stash-skills reflection {run.id}, then stash-skills submit {run.id} NUMBER"
        case JobStatus.QUEUED | JobStatus.RUNNING:
            return f"stash-skills status {run.id} --follow"
        case JobStatus.FAILED if run.backend == "stash":
            return "mend what the reason names, then start another with stash-skills run"
        case JobStatus.FAILED:
            return f"mend what the reason names, then stash-skills resume {run.id}"
        case JobStatus.CANCELLED:
            candidates = f"stash-skills candidates {run.id}, stash-skills install {run.id}, "
            return f"{candidates if run.partial else ''}stash-skills resume {run.id}"


def _after_training(model: RewardModel) -> str:
    match model.status:
        case JobStatus.SUCCEEDED:
            return f"stash-skills run --reward-model {model.id} --task-model MODEL"
        case JobStatus.QUEUED | JobStatus.RUNNING:
            return f"stash-skills status {model.id} --follow"
        case JobStatus.FAILED:
            return "mend what the reason names and train again with stash-skills train"
        case JobStatus.CANCELLED:
            return "stash-skills train"
