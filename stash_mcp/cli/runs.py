"""`run`, `status`, `runs`."""

import math
from typing import Annotated

import typer

from stash_mcp.backends.base import RunOrder, Scope, StartedRun
from stash_mcp.cli.default_model import default_model
from stash_mcp.cli.jobs import (
    NoWait,
    TracePatterns,
    finish,
    in_queue,
    places,
    print_warnings,
    say_unreached,
    show,
    status_word,
)
from stash_mcp.cli.printing import print_json, print_table, print_text, score
from stash_mcp.cli.session import Json, Session, session_of
from stash_mcp.errors import NotFoundError, NotReadyError
from stash_mcp.models import RewardModel
from stash_mcp.server.jobs import Job, find_job
from stash_mcp.server.wording import at_the_end, equal_run_in_words, start_in_words
from stash_mcp.settings import InstallMode


def above_0(value: float | None) -> float | None:
    """Typer's own bounds include their ends, and let through what is no number."""
    if value is not None and not 0 < value < math.inf:
        raise typer.BadParameter("It must be a number above 0.")
    return value


def register(app: typer.Typer) -> None:
    app.command("run")(run)
    app.command("status")(status)
    app.command("runs")(runs)


def run(
    context: typer.Context,
    task_model: Annotated[
        str, typer.Option(help="The model the skill is for, by its LiteLLM name.")
    ],
    reward_model: Annotated[
        str | None, typer.Option(metavar="ID", help="Default: the newest one that is trained.")
    ] = None,
    reflection_model: Annotated[
        str,
        typer.Option(
            help="The model that writes the skill. agent: you. Default: builtin/comments, which "
            "needs none; at Stash one of its choice."
        ),
    ] = "",
    task_api_base: Annotated[
        str | None, typer.Option(metavar="URL", help="OpenAI-compatible server of the task model.")
    ] = None,
    reflection_api_base: Annotated[
        str | None, typer.Option(metavar="URL", help="The same for the reflection model.")
    ] = None,
    max_metric_calls: Annotated[
        int | None,
        typer.Option(min=1, help="Budget: scored replies. Default: enough for 6 proposals."),
    ] = None,
    skill_name: Annotated[str | None, typer.Option(help="Default: made up.")] = None,
    skill_description: Annotated[
        str | None, typer.Option(help="When an agent loads the skill. Default: made up.")
    ] = None,
    trace: TracePatterns = None,
    seed: Annotated[
        str,
        typer.Option(
            help="The first body. default: the description. installed: the installed skill "
            "(--skill-name, or the only one), with your edits; or its name or path."
        ),
    ] = "default",
    random_seed: Annotated[
        int, typer.Option(min=0, max=2**32 - 1, help="Of everything that is drawn.")
    ] = 0,
    no_heldout: Annotated[
        bool, typer.Option("--no-heldout", help="Optimise on all; the scores then flatter.")
    ] = False,
    max_concurrency: Annotated[
        int, typer.Option(min=1, max=256, help="Calls of the task model at once.")
    ] = 8,
    minibatch_size: Annotated[int, typer.Option(min=1, help="Conversations a proposal.")] = 3,
    proposals_at_once: Annotated[
        int, typer.Option(min=1, max=16, help="More than 1: in parallel, so faster.")
    ] = 1,
    max_cost_usd: Annotated[
        float | None,
        typer.Option(callback=above_0, help="Stop there; models of unknown price are refused."),
    ] = None,
    max_seconds: Annotated[
        float | None, typer.Option(callback=above_0, help="Of work; stop there.")
    ] = None,
    no_improvement_for: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="Stop after N proposals without a new best."),
    ] = None,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Take no answer that another run paid for.")
    ] = False,
    new: Annotated[
        bool, typer.Option("--new", help="Start even if an equal run is there.")
    ] = False,
    on_end: Annotated[
        InstallMode | None,
        typer.Option("--install", help="auto: if better; ask: keep it staged. Default: a setting."),
    ] = None,
    agent: Annotated[
        list[str] | None, typer.Option(help="Agent to install for; may be given again.")
    ] = None,
    scope: Annotated[
        Scope, typer.Option(help="For this project, or for all of yours.")
    ] = "project",
    min_gain: Annotated[
        float, typer.Option(min=0, max=1, help="A skill that gains less is only staged.")
    ] = 0.0,
    no_wait: NoWait = False,
    as_json: Json = False,
) -> None:
    """Evolve a skill with GEPA from the comments, and follow it until it is done.

    The plan is shown first: conversations, proposals, calls, expected cost. The models' keys are
    read from the environment. The run goes on if this command is ended. If an equal run is queued,
    running or has succeeded, that one is shown and nothing is started.
    """
    session = session_of(context)
    order = RunOrder(
        reward_model_id=reward_model or _newest_trained(session).id,
        task_model=task_model,
        reflection_model=reflection_model,
        task_api_base=task_api_base,
        reflection_api_base=reflection_api_base,
        max_metric_calls=max_metric_calls,
        skill_name=skill_name,
        skill_description=skill_description,
        trace_ids=tuple(trace) if trace else None,
        seed=seed,
        random_seed=random_seed,
        minibatch_size=minibatch_size,
        proposals_at_once=proposals_at_once,
        max_concurrency=max_concurrency,
        heldout=not no_heldout,
        max_cost_usd=max_cost_usd,
        max_seconds=max_seconds,
        no_improvement_for=no_improvement_for,
        fresh=fresh,
        new=new,
        install=on_end,
        install_agents=tuple(agent or ["claude-code"]),
        install_scope=scope,
        min_gain=min_gain,
    )
    started = session.backend.start_run(order)
    _print_plan(session, started)
    wait = not no_wait and not started.run.status.is_final
    facts = {"existing": started.existing, "warnings": list(started.warnings)}
    finish(session, started.run, wait=wait, as_json=as_json, **facts)


def _newest_trained(session: Session) -> RewardModel:
    """The newest reward model; not an older one while the newest is still in training."""
    model = default_model(session)
    if model is None:
        raise NotFoundError(
            "There is no trained reward model.", "Train one first: stash-skills train."
        )
    if not model.status.is_final:
        raise NotReadyError(
            f"The newest reward model, {model.id} ({model.name}), is still in training.",
            f"Wait for it (stash-skills status {model.id} --follow), or name another one with "
            "--reward-model.",
        )
    print_text(session.err, f"Taking the newest reward model, {model.id} ({model.name}).")
    return model


def _print_plan(session: Session, started: StartedRun) -> None:
    run = started.run
    if started.existing:
        print_text(session.err, equal_run_in_words(run, "--new"))
    print_text(session.err, f"Run {run.id}:", style="bold")
    for sentence in start_in_words(run):
        print_text(session.err, f"- {sentence}")
    print_text(session.err, f"- {at_the_end(run.install)}")
    print_warnings(session, started)


def status(
    context: typer.Context,
    job_id: Annotated[
        str | None,
        typer.Argument(
            metavar="[RUN]", help="Id of a run or of a reward model. Default: the newest run."
        ),
    ] = None,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Show it until it is over.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Show where a run or a training stands: progress, scores, spend, verdict or reason."""
    session = session_of(context)
    job = find_job(session.backend, job_id) if job_id else _newest_run(session)
    if follow:
        finish(session, job, wait=True, as_json=as_json)
    else:
        show(session, job, as_json=as_json)


def _newest_run(session: Session) -> Job:
    listed = session.backend.list_runs()
    say_unreached(session, session.backend)
    if not listed:
        raise NotFoundError(
            "There is no run yet.",
            "Start one with stash-skills run, or name a training: stash-skills status ID.",
        )
    return listed[0]


def runs(context: typer.Context, as_json: Json = False) -> None:
    """List the runs, newest first, with the places in the queue of those that wait.

    Runs and trainings share one queue; the oldest is next. Those of Stash are listed too where
    there is a key for it. Seed and best are in-sample; `status` has held-out numbers.
    """
    session = session_of(context)
    listed = session.backend.list_runs()
    queue = places(session.backend)
    say_unreached(session, session.backend)
    if as_json:
        print_json(session.out, [in_queue(row, queue) for row in listed])
        return
    print_table(
        session.out,
        (
            "id",
            "status",
            "skill",
            "task model",
            "in-sample seed",
            "in-sample best",
            "candidates",
            "created",
        ),
        [
            (
                row.id,
                status_word(row, queue),
                row.skill_name,
                row.request.task_model,
                score(row.seed_score),
                score(row.best_score),
                None if row.progress is None else row.progress.candidates,
                f"{row.created_at:%Y-%m-%d %H:%M}",
            )
            for row in listed
        ],
    )
