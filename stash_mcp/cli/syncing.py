"""`pull`, `push`, `rescore`: what goes between this library and Stash."""

from typing import Annotated

import typer

from stash_mcp.backends.hybrid import Rescore, SyncReport, open_hybrid, rescore
from stash_mcp.cli.jobs import NoWait, finish, print_warnings
from stash_mcp.cli.printing import print_json, print_text
from stash_mcp.cli.session import Json, Session, session_of
from stash_mcp.server.counting import count
from stash_mcp.server.sync_wording import held_in_words, sync_in_words

HELD_SHOWN = 20
DryRun = Annotated[bool, typer.Option("--dry-run", help="Say what would be done, and do nothing.")]


def register(app: typer.Typer) -> None:
    app.command("pull")(pull)
    app.command("push")(push)
    app.command("rescore")(rescore_run)


def pull(
    context: typer.Context,
    traces: Annotated[
        list[str] | None,
        typer.Option(
            "--traces",
            "--trace",
            metavar="PATTERN",
            help="Only these ids; * matches. May be given again.",
        ),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(metavar="ID", help="A reward model of Stash, with its conversations."),
    ] = None,
    dry_run: DryRun = False,
    force: Annotated[
        bool, typer.Option("--force", help="Take Stash's where both sides changed.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Bring conversations, annotations and a reward model from Stash into the library.

    Then runs go on this machine with your own keys and models. Only what changed since the last
    time is stored; a pull that broke off is carried on by the next.
    """
    session = session_of(context)
    with open_hybrid(session.settings, lambda words: _say(session, words)) as hybrid:
        report = hybrid.pull(traces, reward_model=model, dry_run=dry_run, force=force)
    _show(session, report, as_json)


def push(
    context: typer.Context,
    trace: Annotated[
        list[str] | None,
        typer.Option(
            "--trace",
            "--traces",
            metavar="PATTERN",
            help="Only these ids; * matches. May be given again.",
        ),
    ] = None,
    dry_run: DryRun = False,
    force: Annotated[
        bool,
        typer.Option(
            "--force", help="Replace Stash's where both sides changed, and send deleted ones again."
        ),
    ] = False,
    as_json: Json = False,
) -> None:
    """Send conversations and annotations of the library to Stash, each once.

    It is the only command that uploads what the library holds. A push that broke off is carried
    on by the next.
    """
    session = session_of(context)
    with open_hybrid(session.settings, lambda words: _say(session, words)) as hybrid:
        report = hybrid.push(trace, dry_run=dry_run, force=force)
    _show(session, report, as_json)


def rescore_run(
    context: typer.Context,
    run_id: Annotated[str, typer.Argument(metavar="RUN", help="A finished run of Stash.")],
    task_model: Annotated[
        str, typer.Option(help="By its LiteLLM name. Default: that of the run, with your key.")
    ] = "",
    task_api_base: Annotated[
        str | None, typer.Option(metavar="URL", help="OpenAI-compatible server of the task model.")
    ] = None,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Take no answer that was paid for before.")
    ] = False,
    new: Annotated[
        bool, typer.Option("--new", help="Measure even if an equal measure is there.")
    ] = False,
    no_wait: NoWait = False,
    as_json: Json = False,
) -> None:
    """Measure the seed and the best of a run of Stash again on this machine.

    Its reward model and conversations are brought here, both skills are answered with afresh, and
    the verdict gives the difference with its interval. The conversations are those that Stash's
    search saw: nothing was held out from it.
    """
    session = session_of(context)
    asked = Rescore(run_id, task_model, task_api_base, fresh, new)
    with open_hybrid(session.settings, lambda words: _say(session, words)) as hybrid:
        started = rescore(hybrid, session.backend, asked)
    run = started.run
    if run.plan is not None and not started.existing:
        print_text(
            session.err,
            f"Measuring {run.id}: {count(run.plan.examples, 'conversation')}, "
            f"{count(run.plan.task_calls_at_most, 'call')} of {run.request.task_model}.",
        )
    print_warnings(session, started)
    wait = not no_wait and not run.status.is_final
    finish(session, run, wait=wait, as_json=as_json, existing=started.existing)


def _say(session: Session, words: str) -> None:
    print_text(session.err, words, style="dim")


def _show(session: Session, report: SyncReport, as_json: bool) -> None:
    if as_json:
        print_json(session.out, report)
    else:
        for sentence in sync_in_words(report):
            print_text(session.out, sentence)
        held = (*report.conflicts, *report.refused)
        for row in held[:HELD_SHOWN]:
            print_text(session.out, f"- {held_in_words(row)}")
        if len(held) > HELD_SHOWN:
            print_text(session.out, f"... and {len(held) - HELD_SHOWN} more; --json has them all.")
    if report.conflicts or report.refused:
        raise typer.Exit(1)
