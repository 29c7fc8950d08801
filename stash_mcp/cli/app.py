"""The command's parts put together: one Typer application."""

from collections.abc import Callable, Sequence

import typer

from stash_mcp.cli import (
    demo,
    doctor,
    housekeeping,
    installed,
    logs,
    reflections,
    reward_models,
    runs,
    serving,
    setup,
    skills,
    stopping,
    syncing,
    traces,
    watching,
)
from stash_mcp.cli.session import Session, open_session, tell_news

PROGRAM = "stash-skills"
HELP = """\
Turn reviewers' comments on agent conversations into a skill that an agent loads.

The order of things: import, annotate, train, run, candidates, install. `stash-skills serve` is the
same for an agent, over MCP.
"""

app = typer.Typer(
    name=PROGRAM,
    help=HELP,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
)
for group in (
    *(traces, reward_models, runs, reflections, stopping, logs, syncing),
    *(skills, installed, watching, housekeeping),
    *(serving, setup, doctor, demo),
):
    group.register(app)


def run_command(arguments: Sequence[str], session: Session | None) -> int:
    """The exit code of the command that `arguments` name; raises what it raises."""
    command = typer.main.get_command(app)
    session = session or open_session()
    try:
        code = _exit_code(lambda: command.main(list(arguments), prog_name=PROGRAM, obj=session))
        if code == 0:
            tell_news(session)
        return code
    finally:
        session.close()


def _exit_code(run: Callable[[], object]) -> int:
    try:
        run()
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else 0
    return 0
