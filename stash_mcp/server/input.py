"""Standard input as the protocol's alone, line by line, until a client closes it."""

import os
import sys
from collections.abc import Callable
from io import TextIOWrapper
from typing import BinaryIO

import anyio
import anyio.to_thread
from mcp.types import JSONRPCError

from stash_mcp.server.wire import Line, read_line

if sys.platform == "win32":
    from mcp.os.win32.utilities import rebind_std_handle_to_fd


class Messages(anyio.AsyncFile[str]):
    """The messages that can be handed on; the others are refused.

    refuse: called on the event loop; must not block it.
    """

    def __init__(self, lines: TextIOWrapper, refuse: Callable[[JSONRPCError], None]) -> None:
        # A thread of its own: were all the others busy, the end of the input would not be seen.
        super().__init__(lines, limiter=anyio.CapacityLimiter(1))
        self._lines = lines
        self._refuse = refuse

    async def readline(self) -> str:
        """The next message; "" at the end of the input."""
        while True:
            found = await anyio.to_thread.run_sync(self._next, limiter=self.limiter)
            if found is None:
                return ""
            for refusal in found.refusals:
                self._refuse(refusal)
            if found.message is not None:
                return found.message

    def _next(self) -> Line | None:
        line = self._lines.readline()
        return read_line(line) if line else None


def take_input() -> TextIOWrapper:
    """Standard input as text. Whoever else reads it, such as a child of ours, finds its end."""
    return TextIOWrapper(_taken(), encoding="utf-8", errors="replace")


def _taken() -> BinaryIO:
    try:
        ours = _duplicate(0)
        nothing = os.open(os.devnull, os.O_RDONLY)
    except OSError:
        return sys.stdin.buffer
    os.dup2(nothing, 0)
    os.close(nothing)
    if sys.platform == "win32":
        rebind_std_handle_to_fd(0)
    # Not to be closed under the thread that reads it.
    return os.fdopen(ours, "rb", closefd=False)


def _duplicate(descriptor: int) -> int:
    """Above the three standard ones, of which some may be closed."""
    copy = os.dup(descriptor)
    if copy > 2:
        return copy
    try:
        return _duplicate(descriptor)
    finally:
        os.close(copy)
