"""What a command works with: the backend, the two consoles, the clock."""

import contextlib
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from typing import Annotated, cast

import typer
from rich.console import Console

from stash_mcp.backends.base import Backend
from stash_mcp.backends.both import open_backends
from stash_mcp.cli.printing import print_text
from stash_mcp.errors import StashSkillsError, VariableError
from stash_mcp.settings import (
    BackendName,
    Settings,
    load_settings,
    load_usable_settings,
    refuse_with,
)

# Where no terminal says how wide it is, nothing is cut or wrapped.
_UNLIMITED_WIDTH = 100_000


def _console(*, stderr: bool) -> Console:
    stream = sys.stderr if stderr else sys.stdout
    width = None if stream.isatty() else _UNLIMITED_WIDTH
    return Console(stderr=stderr, width=width, highlight=False, markup=False, emoji=False)


@dataclass
class Session:
    """`open_backend` is called when a command first needs the backend. faults: of variables that
    `settings` takes for unset; only what tells of them works then.
    """

    settings: Settings = field(default_factory=load_settings)
    open_backend: Callable[[Settings], Backend] = open_backends
    out: Console = field(default_factory=lambda: _console(stderr=False))
    err: Console = field(default_factory=lambda: _console(stderr=True))
    clock: Callable[[], datetime] = lambda: datetime.now(UTC)
    sleep: Callable[[float], None] = time.sleep
    faults: tuple[VariableError, ...] = ()

    @cached_property
    def backend(self) -> Backend:
        return self.open_backend(self.settings)

    def close(self) -> None:
        """End what the backend holds open, if a command has opened it."""
        if "backend" in vars(self):
            self.backend.close()


def tell_news(session: Session) -> None:
    """Say on standard error what was installed or staged by itself, once; only where the command
    has opened the library anyway.
    """
    if "backend" not in vars(session):
        return
    # What the command was asked for is done; news that cannot be had do not change that.
    with contextlib.suppress(StashSkillsError):
        for notice in session.backend.take_notices("command"):
            print_text(session.err, notice.note)


def open_session() -> Session:
    settings, faults = load_usable_settings()
    return Session(settings, faults=faults)


def session_of(context: typer.Context, *, tells_faults: bool = False) -> Session:
    """Raises VariableError for a variable that cannot be used, unless the command tells of it."""
    session = cast(Session, context.obj)
    if not tells_faults:
        refuse_with(session.faults)
    return session


Json = Annotated[bool, typer.Option("--json", help="Print one JSON value, for programs.")]
Where = Annotated[
    BackendName | None,
    typer.Option("--backend", help="This machine, or the hosted Stash. Default: a setting."),
]
