"""`cancel` and `resume`."""

import typer

from stash_mcp.cli.jobs import JobId, NoWait, finish, show
from stash_mcp.cli.printing import print_text
from stash_mcp.cli.session import Json, session_of
from stash_mcp.cli.skills import RunId
from stash_mcp.server.jobs import stop


def register(app: typer.Typer) -> None:
    app.command("cancel")(cancel)
    app.command("resume")(resume)


def cancel(context: typer.Context, job_id: JobId, as_json: Json = False) -> None:
    """Stop a run or a training, queued or running, within 2 seconds.

    The candidates that a run has scored stay usable: see `candidates` and `install`. `resume`
    carries the run on. Stash can neither stop nor resume one of its own.
    """
    session = session_of(context)
    stopped = stop(session.backend, job_id)
    print_text(session.err, stopped.in_words)
    show(session, stopped.job, as_json=as_json)


def resume(
    context: typer.Context, run_id: RunId, no_wait: NoWait = False, as_json: Json = False
) -> None:
    """Carry on a failed or cancelled run, and follow it until it is done.

    What was paid for is not paid again. A run whose process died is carried on by itself. Stash
    cannot resume one of its own.
    """
    session = session_of(context)
    run = session.backend.resume_run(run_id)
    print_text(session.err, f"{run.id} is in the queue again; nothing is paid twice.")
    finish(session, run, wait=not no_wait, as_json=as_json)
