"""Serving over standard input and output, and leaving at once."""

import contextlib
import math
import threading
from collections.abc import AsyncIterable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NoReturn

import anyio
from anyio.streams.memory import MemoryObjectSendStream
from mcp.server import MCPServer
from mcp.server.stdio import stdio_server
from mcp.shared._stream_protocols import WriteStream
from mcp.shared.message import SessionMessage
from mcp.types import JSONRPCError

from stash_mcp.errors import VariableError
from stash_mcp.server.app import build_server
from stash_mcp.server.input import Messages, take_input
from stash_mcp.server.leaving import leave, leave_on_signals
from stash_mcp.server.logs import log_plainly
from stash_mcp.server.opening import LazyBackend, Once
from stash_mcp.server.watching import watch_in_background
from stash_mcp.settings import load_usable_settings

if TYPE_CHECKING:
    from collections.abc import Callable

    from stash_mcp.backends.base import Backend
    from stash_mcp.settings import Settings

GRACE_SECONDS = 0.1
"""After the end of the input, for the last answers to be written."""


def serve() -> NoReturn:
    """Serve the library of this user until the client closes standard input, or a signal."""
    log_plainly()
    settings, faults = load_usable_settings()
    if faults:
        _serve_refusals(settings, faults[0])
    began_at = datetime.now(UTC)
    opener = Once(lambda: _import_opener(settings, began_at))
    backend = LazyBackend(lambda: opener()())
    watch_in_background(backend, settings.home)
    serve_stdio(
        build_server(
            backend,
            settings.project_dir,
            prepare=opener,
            has_library=settings.library_path.exists,
        )
    )


def _serve_refusals(settings: "Settings", fault: VariableError) -> NoReturn:
    """A client shows what a tool says, and hides why a server did not start."""

    def refuse() -> "Backend":
        raise fault

    server = build_server(refuse, settings.project_dir, has_library=lambda: False)
    serve_stdio(server)


def _import_opener(settings: "Settings", began_at: datetime) -> "Callable[[], Backend]":
    # Not at the start: it would lengthen what a client waits for.
    from stash_mcp.backends.both import open_backends
    from stash_mcp.skills.sight import session_from_now

    session = session_from_now(settings, began_at)
    return lambda: open_backends(settings, session)


def serve_stdio(server: MCPServer[Any]) -> NoReturn:
    """Leaves at once when the client closes standard input or sends a signal: the SDK would wait
    for tool calls in progress, and clients kill what is still there after half a second.
    """
    leave_on_signals()
    anyio.run(_serve, server)
    leave()


async def _serve(server: MCPServer[Any]) -> None:
    inner = server._lowlevel_server
    # Without a bound: what has come is taken off the input, or its end would not be seen while
    # one message holds up the next ones.
    onward, messages = anyio.create_memory_object_stream[SessionMessage | Exception](math.inf)
    refused, refusals = anyio.create_memory_object_stream[JSONRPCError](math.inf)
    lines = Messages(take_input(), refused.send_nowait)
    async with (
        messages,
        refused,
        refusals,
        stdio_server(lines) as (from_client, to_client),
        anyio.create_task_group() as tasks,
    ):
        tasks.start_soon(_pass_on, from_client, onward)
        tasks.start_soon(_send_back, refusals, to_client)
        await inner.run(messages, to_client, inner.create_initialization_options())
        tasks.cancel_scope.cancel()


async def _pass_on(
    from_client: AsyncIterable[SessionMessage | Exception],
    onward: MemoryObjectSendStream[SessionMessage | Exception],
) -> None:
    """Hand the messages on, and see to it that their end is the end of the process."""
    async with onward:
        async for message in from_client:
            await onward.send(message)
        # The SDK cancels what waits, and then waits for the threads of the other tool calls.
        end = threading.Timer(GRACE_SECONDS, leave)
        end.daemon = True
        end.start()


async def _send_back(
    refusals: AsyncIterable[JSONRPCError], to_client: WriteStream[SessionMessage]
) -> None:
    with contextlib.suppress(anyio.ClosedResourceError, anyio.BrokenResourceError):
        async for refusal in refusals:
            await to_client.send(SessionMessage(refusal))
