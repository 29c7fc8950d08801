"""`setup`: telling the agents of this machine how to start our server."""

from collections.abc import Sequence
from typing import Annotated

import typer

from stash_mcp.agents.setup import CHANGES, FAILED, Order, Setup, Step, server_of
from stash_mcp.agents.surroundings import Surroundings, here
from stash_mcp.agents.table import AGENTS, Agent, Scope, agent, config_file, is_here
from stash_mcp.cli.printing import print_json, print_raw, print_text
from stash_mcp.cli.session import Json, Session, session_of
from stash_mcp.errors import StorageError
from stash_mcp.storage.files import try_lock

LOCK_SECONDS = 30.0
NOT_DONE = 1

_DONE = {
    "added": "{title}: added to {path}.",
    "replaced": "{title}: replaced in {path}.",
    "removed": "{title}: removed from {path}.",
    "unchanged": "{title}: is set up already, in {path}.",
    "absent": "{title}: has no entry of ours in {path}.",
    "differs": "{title}: has another entry of ours in {path}; --force replaces it.",
    "by hand": "{title}: the command `claude` was not found here. Run this where it is:",
    "refused": "{title}: {problem}",
}
_TO_BE_DONE = {
    "added": "{title}: to be added to {path}.",
    "replaced": "{title}: to be replaced in {path}.",
    "removed": "{title}: to be removed from {path}.",
}


def register(app: typer.Typer) -> None:
    app.command("setup")(setup)


def setup(
    context: typer.Context,
    agents: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[AGENT]...",
            help=f"{', '.join(AGENTS)}. Default: show what would be done at those found here.",
        ),
    ] = None,
    all: Annotated[bool, typer.Option("--all", help="All that are found on this machine.")] = False,
    scope: Annotated[
        Scope, typer.Option(help="For all of your projects, or in the files of this one.")
    ] = "user",
    print_only: Annotated[
        bool, typer.Option("--print", help="Print the entry, to be put there by hand.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show the diff and the paths; write nothing.")
    ] = False,
    remove: Annotated[bool, typer.Option("--remove", help="Take our entry away.")] = False,
    force: Annotated[
        bool, typer.Option("--force", help="Replace an entry of ours that says something else.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Set agents up: write this server's entry into their configuration, or take it away.

    Everything else in those files stays as it is; a copy of a changed file is kept. A second time
    nothing changes. For Claude Code this also makes the skills folder, since a session only sees
    new skills in a folder that was there when it started.
    """
    session = session_of(context)
    rows = _chosen(session, agents or [], all, everyone=print_only)
    surroundings = here()
    command = surroundings.serve_command(portable=scope == "project")
    setup = Setup(session.settings, server_of(session.settings, command))
    if print_only:
        _print_snippets(session, setup, rows, scope, as_json)
        return
    only_shown = dry_run or not (agents or all)
    order = Order(scope=scope, remove=remove, force=force)
    steps = _steps(session, setup, rows, order, only_shown)
    if as_json:
        listed = [_as_dict(step, scope) for step in steps]
        print_json(session.out, {"steps": listed, "dry_run": only_shown, "command": command})
    else:
        _print_steps(session, steps, order, only_shown)
        _print_end(session, steps, surroundings, order, named=bool(agents or all))
    not_done = FAILED if only_shown else (*FAILED, "by hand")
    if any(step.action in not_done for step in steps):
        raise typer.Exit(NOT_DONE)


def _chosen(session: Session, named: Sequence[str], all: bool, *, everyone: bool) -> list[Agent]:
    if named:
        return [agent(agent_id) for agent_id in dict.fromkeys(named)]
    if everyone and not all:
        return list(AGENTS.values())
    return [row for row in AGENTS.values() if is_here(row, session.settings)]


def _steps(
    session: Session, setup: Setup, rows: Sequence[Agent], order: Order, only_shown: bool
) -> Sequence[Step]:
    if only_shown:
        return setup.plan(rows, order)
    with try_lock(session.settings.home / "setup.lock", timeout=LOCK_SECONDS) as ours:
        if not ours:
            raise StorageError(
                f"Another setup has been going on for {LOCK_SECONDS:.0f} s.",
                "Wait for it to finish and do it again.",
            )
        return [setup.do(step, session.clock()) for step in setup.plan(rows, order)]


def _print_snippets(
    session: Session, setup: Setup, rows: Sequence[Agent], scope: Scope, as_json: bool
) -> None:
    if as_json:
        listed = [
            {
                "agent": row.id,
                "path": str(config_file(row, session.settings, scope)),
                "entry": setup.snippet(row, scope),
            }
            for row in rows
        ]
        print_json(session.out, listed)
        return
    for number, row in enumerate(rows):
        path = config_file(row, session.settings, scope)
        by_command = row.by_command and scope == "user"
        where = "run this" if by_command else f"in {path}"
        print_text(session.out, ("\n" if number else "") + f"{row.title}, {where}:", style="bold")
        print_raw(session.out, setup.snippet(row, scope))


def _print_steps(session: Session, steps: Sequence[Step], order: Order, only_shown: bool) -> None:
    for step in steps:
        words = _TO_BE_DONE.get(step.action) if only_shown else None
        words = words or _DONE[step.action]
        said = words.format(title=step.agent.title, path=step.path, problem=step.problem)
        print_text(session.out, said)
        if step.line:
            print_raw(session.out, step.line)
        elif step.diff and (only_shown or step.action == "differs"):
            print_raw(session.out, step.diff)
        if step.backup:
            print_text(session.out, f"  What was there before is kept in {step.backup}.")
        if step.skills_dir:
            _print_skills_dir(session, step, only_shown)
        if not only_shown and not order.remove and step.action in CHANGES:
            for note in _notes(step, order.scope):
                print_text(session.out, f"  {note}")


def _print_skills_dir(session: Session, step: Step, only_shown: bool) -> None:
    made = "would be made" if only_shown else "was made"
    print_text(
        session.out,
        f"  The skills folder {step.skills_dir} {made}: sessions that start after that see a skill "
        "as soon as it is installed; one that runs already needs a restart or `/reload-skills`.",
    )


def _notes(step: Step, scope: Scope) -> list[str]:
    notes = [step.agent.note]
    if scope == "project":
        shared = "The entry holds a path of this machine; others who share the file need their own."
        notes += [step.agent.project_note, shared]
    return [note for note in notes if note]


def _print_end(
    session: Session,
    steps: Sequence[Step],
    surroundings: Surroundings,
    order: Order,
    *,
    named: bool,
) -> None:
    if not steps:
        print_text(
            session.out,
            f"None of these agents was found here: {', '.join(AGENTS)}. Name one to set it up all "
            "the same, or see the entry with --print.",
        )
        return
    if not named:
        print_text(session.out, "Nothing was written. Name agents, or do it for these with --all.")
    if surroundings.kind == "venv" and not order.remove:
        print_text(
            session.out,
            f"The entry names this environment ({surroundings.prefix}); if you move it, do this "
            "again with --force.",
        )


def _as_dict(step: Step, scope: Scope) -> dict[str, object]:
    return {
        "agent": step.agent.id,
        "scope": scope,
        "path": str(step.path),
        "action": step.action.replace(" ", "_"),
        "diff": step.diff or None,
        "line": step.line,
        "problem": step.problem,
        "backup": None if step.backup is None else str(step.backup),
        "skills_dir": None if step.skills_dir is None else str(step.skills_dir),
        "notes": _notes(step, scope),
    }
