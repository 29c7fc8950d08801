"""`reflection`, `submit`: what a run asks the agent, and the answer."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from stash_mcp.cli.printing import print_json, print_raw, print_text
from stash_mcp.cli.session import Json, session_of
from stash_mcp.cli.skills import RunId
from stash_mcp.errors import InputError
from stash_mcp.models import Reflection, Submission
from stash_mcp.server.inputs import read_input

MAX_BODY_FILE_BYTES = 1_000_000
Number = Annotated[int, typer.Argument(metavar="NUMBER", min=1, help="As `reflection` shows it.")]


def register(app: typer.Typer) -> None:
    app.command("reflection")(reflection)
    app.command("submit")(submit)


def reflection(
    context: typer.Context,
    run_id: RunId,
    number: Annotated[
        int | None,
        typer.Argument(metavar="[NUMBER]", min=1, help="Default: the first that waits."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Print what a run with `--reflection-model agent` waits for.

    Write it yourself, or have an agent write it, and hand it in with `submit`.
    """
    session = session_of(context)
    found = session.backend.get_reflection(run_id, number)
    if as_json:
        shown = None if found.reflection is None else found.reflection.model_dump(mode="json")
        print_json(session.out, {"reflection": shown, "waiting": found.waiting})
        return
    if found.reflection is None:
        print_text(session.err, f"{run_id} waits for no reflection now; it is {found.run.status}.")
        return
    print_raw(session.out, found.reflection.prompt)
    listed = ", ".join(map(str, found.waiting))
    print_text(session.err, f"Reflection {found.reflection.number}; waiting: {listed}", style="dim")
    print_text(session.err, f"Next: {_submit_with(found.reflection)}", style="dim")


def submit(
    context: typer.Context,
    run_id: RunId,
    number: Number,
    file: Annotated[
        str | None,
        typer.Argument(metavar="[FILE]", help="With the body; - is standard input."),
    ] = None,
    name: Annotated[str | None, typer.Option(help="Where a name is asked for.")] = None,
    description: Annotated[str | None, typer.Option(help="Where a name is asked for.")] = None,
    as_json: Json = False,
) -> None:
    """Hand in what `reflection` printed; the run then goes on by itself.

    What breaks a rule is refused with the reason, and may be handed in again.
    """
    session = session_of(context)
    submission = Submission(
        run_id=run_id,
        number=number,
        body=None if file is None else _body(file),
        name=name,
        description=description,
    )
    run = session.backend.submit_reflection(submission)
    if as_json:
        print_json(session.out, run)
        return
    print_text(session.out, f"Reflection {number} of {run_id} is accepted.")
    following = "reflection" if run.reflections_waiting else "status --follow"
    print_text(session.err, f"Next: stash-skills {following} {run_id}", style="dim")


def _body(file: str) -> str:
    if file == "-":
        data = sys.stdin.buffer.read(MAX_BODY_FILE_BYTES)
    else:
        data = read_input(file, Path.cwd(), limit=MAX_BODY_FILE_BYTES)
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError("The body is not UTF-8 text.", "Save it as UTF-8.") from error


def _submit_with(reflection: Reflection) -> str:
    command = f"stash-skills submit {reflection.run_id} {reflection.number}"
    if reflection.kind == "identity":
        return f"{command} --name NAME --description TEXT"
    return f"{command} FILE"
