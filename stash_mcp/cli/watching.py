"""`watch`."""

import threading
from collections.abc import Callable
from typing import Annotated

import typer

from stash_mcp.cli.printing import print_json, print_text
from stash_mcp.cli.session import Json, Session, session_of
from stash_mcp.errors import StashSkillsError
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
    # A person who starts it may have mended what an installation was put off for.
    _look(session, as_json, at_once=True)
    if once:
        return
    print_text(
        session.err,
        f"Watching the runs in {session.settings.home}, and those of Stash that were started from "
        "here. Ctrl-C ends it.",
    )
    trouble = Trouble(lambda line: print_text(session.err, line))
    for _ in hints(session.settings.runs_dir, threading.Event(), poll_seconds=LOOK_SECONDS):
        _look_on(session, as_json, trouble)


class Trouble:
    """Says what is wrong when it begins or becomes another thing, and when it is over."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self._now = ""

    def is_now(self, problem: str) -> None:
        if problem != self._now:
            self._say(problem or "The library can be read again; watching goes on.")
        self._now = problem


def _look_on(session: Session, as_json: bool, trouble: Trouble) -> None:
    """Look, and outlive what goes wrong: the folder of our data may go away and return."""
    library = session.settings.library_path
    if not library.exists():
        # Not looked into: that would make an empty one in its place.
        trouble.is_now(f"{library} is not there now; waiting for it.")
        return
    try:
        _look(session, as_json)
    except StashSkillsError as error:
        trouble.is_now(f"Looked in vain, and will look again: {error.problem}")
    else:
        trouble.is_now("")


def _look(session: Session, as_json: bool, *, at_once: bool = False) -> None:
    session.backend.reconcile(at_once=at_once)
    for notice in session.backend.take_notices("command"):
        if as_json:
            print_json(session.out, notice)
        else:
            print_text(session.out, notice.note)
