"""The command's entry: picks the way, and turns every error into words and an exit code."""

import contextlib
import gc
import os
import sys
from collections.abc import Sequence
from types import ModuleType
from typing import TYPE_CHECKING, NoReturn, TextIO

from stash_mcp.errors import StashSkillsError
from stash_mcp.server.diverting import standard_output_diverted
from stash_mcp.server.leaving import leave_on_signals

if TYPE_CHECKING:
    from stash_mcp.cli.session import Session

FAILED = 1
INTERRUPTED = 130


def main(argv: Sequence[str] | None = None, session: "Session | None" = None) -> int:
    """Run one command; returns the exit code. `session` is what commands work with, for tests."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    as_json = "--json" in arguments
    _open_closed_streams()
    for stream in (sys.stdout, sys.stderr):
        _use_utf8(stream)
    try:
        return _run(arguments, session)
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        _drop_output()
        return FAILED
    except StashSkillsError as error:
        _failures().show(error, as_json=as_json)
        return FAILED
    except Exception as error:  # noqa: BLE001 - the one place where no error may go further
        _failures().show_unexpected(error, as_json=as_json)
        return FAILED


def _run(arguments: list[str], session: "Session | None") -> int:
    if arguments == ["serve"] and session is None:
        _serve()
    # Imported here: a client waits for `serve`, and the rest of the command would delay it.
    from stash_mcp.cli.app import run_command

    code = run_command(arguments, session)
    sys.stdout.flush()
    return code


def _serve() -> NoReturn:
    # A client may give up while the libraries load; an exception there can get lost in them.
    leave_on_signals()
    # What is loaded here stays; to look for garbage in it takes a tenth of the start.
    gc.disable()
    with standard_output_diverted():
        # Not above: the other commands do without the server's libraries.
        from stash_mcp.server.stdio import serve
    gc.freeze()
    gc.enable()
    serve()


def _failures() -> ModuleType:
    # Here and not above: a client waits for `serve`, which seldom fails.
    from stash_mcp.cli import failures

    return failures


def _open_closed_streams() -> None:
    """A shell's `>&-` leaves no stream at all, which no library expects."""
    for name in ("stdin", "stdout", "stderr"):
        if getattr(sys, name) is None:
            # Ends with the process.
            setattr(sys, name, open(os.devnull, "r" if name == "stdin" else "w"))  # noqa: SIM115


def _use_utf8(stream: TextIO) -> None:
    """Windows consoles and pipes have other encodings, in which a conversation may not fit."""
    reconfigure = getattr(stream, "reconfigure", None)
    if reconfigure is not None:
        reconfigure(encoding="utf-8", errors="backslashreplace")


def _drop_output() -> None:
    """Whoever read our output is gone; keep the interpreter from failing once more at its end."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
