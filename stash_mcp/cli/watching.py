"""`watch`."""

import threading
from typing import Annotated

import typer

from stash_mcp.cli.printing import print_json, print_text
from stash_mcp.cli.session import Json, Session, session_of
from stash_mcp.server.watching import LOOK_SECONDS
from stash_mcp.skills.watch import hints


def register(app: typer.Typer) -> None:
    app.command("watch")(watch)


def watch(
    context: typer.Context,
    once: Annotated[bool, typer.Option("--once", help="Look one time and end.")] = False,
    as_json: Json = False,
) -> None:
    """Install the skills of finished runs that asked for it, until Ctrl-C.

    The worker does the same when a run ends, and so does the server while a session is open; this
    is for what neither could do, for example because a skill had been edited.
    """
    session = session_of(context)
    _look(session, as_json)
    if once:
        return
    print_text(
        session.err,
        f"Watching the runs in {session.settings.home}, and those of Stash that were started from "
        "here. Ctrl-C ends it.",
    )
    for _ in hints(session.settings.runs_dir, threading.Event(), poll_seconds=LOOK_SECONDS):
        _look(session, as_json)


def _look(session: Session, as_json: bool) -> None:
    session.backend.reconcile()
    for notice in session.backend.take_notices("command"):
        if as_json:
            print_json(session.out, notice)
        else:
            print_text(session.out, notice.note)
