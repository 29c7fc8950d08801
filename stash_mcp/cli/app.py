"""The command's parts put together: one Typer application."""

from collections.abc import Sequence

import typer

from stash_mcp.cli import (
    demo,
    housekeeping,
    installed,
    logs,
    reward_models,
    runs,
    serving,
    skills,
    stopping,
    traces,
    watching,
)
from stash_mcp.cli.session import Session

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
    *(traces, reward_models, runs, stopping, logs, skills, installed, watching, housekeeping),
    *(serving, demo),
):
    group.register(app)


def run_command(arguments: Sequence[str], session: Session | None) -> int:
    """The exit code of the command that `arguments` name; raises what it raises."""
    command = typer.main.get_command(app)
    try:
        command.main(args=list(arguments), prog_name=PROGRAM, obj=session or Session())
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else 0
    return 0
