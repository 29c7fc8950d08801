"""Serving over standard input and output, and leaving at once."""

import contextlib
import os
import signal
import sys
from types import FrameType
from typing import Any, NoReturn

from mcp.server import MCPServer

from stash_mcp.backends.base import Backend
from stash_mcp.server.app import build_server
from stash_mcp.server.opening import LazyBackend
from stash_mcp.server.watching import watch_in_background
from stash_mcp.settings import load_settings

# Those that exist on this platform.
_SIGNALS = ("SIGINT", "SIGTERM", "SIGHUP", "SIGBREAK")


def serve() -> NoReturn:
    """Serve the library of this user until the client closes standard input, or a signal."""
    settings = load_settings()

    def open_backend() -> Backend:
        # Imported at the first tool call: it would lengthen what a client waits for at the start.
        from stash_mcp.backends.local import open_local_backend

        return open_local_backend(settings)

    backend = LazyBackend(open_backend)
    watch_in_background(backend, settings.home)
    serve_stdio(build_server(backend, settings.project_dir))


def serve_stdio(server: MCPServer[Any]) -> NoReturn:
    """Leaves at once when the client closes standard input or sends a signal: the SDK would wait
    for tool calls in progress, and clients kill what is still there after half a second. Nothing
    is lost: what is stored is stored whole, and jobs run in a process of their own.
    """
    for name in _SIGNALS:
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), _leave_on_signal)
    server.run("stdio")
    _leave()


def _leave_on_signal(_number: int, _frame: FrameType | None) -> NoReturn:
    _leave()


def _leave() -> NoReturn:
    with contextlib.suppress(OSError, ValueError):
        sys.stderr.flush()
    os._exit(0)
