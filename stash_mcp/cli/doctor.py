"""`doctor`: what is there, what is missing, and what to do about it."""

from collections.abc import Sequence
from enum import StrEnum
from typing import Annotated

import typer
from rich.console import Console

from stash_mcp.agents.surroundings import here, torch_index
from stash_mcp.cli.printing import print_json, print_text
from stash_mcp.cli.session import Json, session_of
from stash_mcp.doctor import installing
from stash_mcp.doctor.examine import Questions, examine
from stash_mcp.doctor.installation import requirements_of
from stash_mcp.doctor.report import Check, State
from stash_mcp.settings import refuse_with, stash_access

PROBLEMS = 1
_STYLES: dict[State, str] = {
    "ok": "",
    "warning": "yellow",
    "problem": "bold red",
    "not checked": "dim",
}
_WIDTH = len("not checked")


class Part(StrEnum):
    LOCAL = "local"


def register(app: typer.Typer) -> None:
    app.command("doctor")(doctor)


def doctor(
    context: typer.Context,
    models: Annotated[
        list[str] | None,
        typer.Option(metavar="MODEL", help="Call this model once; may be given again."),
    ] = None,
    api_base: Annotated[
        str | None, typer.Option(metavar="URL", help="Where the models that are named answer.")
    ] = None,
    gpu: Annotated[
        bool, typer.Option("--gpu", help="Look what a training would run on; takes seconds.")
    ] = False,
    install: Annotated[
        Part | None,
        typer.Option(help="Install the local pipeline in the background; ask again to see it."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Check this installation and say what to do where something is missing.

    Nothing is sent to a model that is not named. The exit code is 1 where there is a problem;
    warnings are none.
    """
    session = session_of(context, tells_faults=True)
    settings = session.settings
    surroundings = here()
    if install is not None:
        refuse_with(session.faults)
        installing.start(
            settings,
            surroundings,
            requirements_of(install.value),
            now=session.clock(),
            cpu_torch=torch_index(),
        )
    questions = Questions(tuple(models or ()), api_base, gpu)
    checks = examine(settings, surroundings, stash_access, questions, session.clock, session.faults)
    if as_json:
        print_json(session.out, {"checks": [check.model_dump() for check in checks]})
    else:
        _print(session.out, checks)
    if any(check.state == "problem" for check in checks):
        raise typer.Exit(PROBLEMS)


def _print(console: Console, checks: Sequence[Check]) -> None:
    for check in checks:
        line = f"{check.state:{_WIDTH}}  {check.name}: {check.said}"
        print_text(console, line, style=_STYLES[check.state])
        if check.fix:
            print_text(console, f"{'':{_WIDTH}}    {check.fix}")
