"""What a command works with: the backend, the two consoles, the clock."""

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
from stash_mcp.backends.local import open_local_backend
from stash_mcp.settings import Settings, load_settings

# Where no terminal says how wide it is, nothing is cut or wrapped.
_UNLIMITED_WIDTH = 100_000


def _console(*, stderr: bool) -> Console:
    stream = sys.stderr if stderr else sys.stdout
    width = None if stream.isatty() else _UNLIMITED_WIDTH
    return Console(stderr=stderr, width=width, highlight=False, markup=False, emoji=False)


@dataclass
class Session:
    """`open_backend` is called when a command first needs the backend."""

    settings: Settings = field(default_factory=load_settings)
    open_backend: Callable[[Settings], Backend] = open_local_backend
    out: Console = field(default_factory=lambda: _console(stderr=False))
    err: Console = field(default_factory=lambda: _console(stderr=True))
    clock: Callable[[], datetime] = lambda: datetime.now(UTC)
    sleep: Callable[[float], None] = time.sleep

    @cached_property
    def backend(self) -> Backend:
        return self.open_backend(self.settings)


def session_of(context: typer.Context) -> Session:
    return cast(Session, context.obj)


Json = Annotated[bool, typer.Option("--json", help="Print one JSON value, for programs.")]
