"""Commands that a job has started, each with what it started itself, so that all of them can be
ended: when one takes too long, and when the job's own process ends.

A job's process that is killed from outside ends nothing; what it had started then finishes its one
request by itself.
"""

import asyncio
import contextlib
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

GRACE_SECONDS = 1.0
"""For the rest of its output, once a command has ended while something it started goes on."""
MAX_OUTPUT_BYTES = 16_000_000
_LOOK_SECONDS = 0.02


@dataclass(frozen=True)
class Output:
    """What a command wrote, each at most MAX_OUTPUT_BYTES."""

    out: str
    err: str


@dataclass(frozen=True)
class _Running:
    pid: int
    folder: Path


_running: set[_Running] = set()
_lock = threading.Lock()


async def run_command(
    command: Sequence[str], text: str, folder: Path, environ: Mapping[str, str], seconds: float
) -> Output:
    """Run `command` in `folder` with `text` on its standard input, and all that it starts with it.

    folder: removed with the command by `end_commands`. Raises TimeoutError after `seconds`, when
    nothing of it runs any more.
    """
    process = await asyncio.create_subprocess_exec(
        *command,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        cwd=folder,
        env=dict(environ),
        # A group of its own, which can be ended as one.
        start_new_session=sys.platform != "win32",
    )
    with _registered(_Running(process.pid, folder)):
        try:
            async with asyncio.timeout(seconds):
                return await _talk(process, text.encode())
        finally:
            _end_group(process.pid)
            await _ended(process)


async def _talk(process: asyncio.subprocess.Process, text: bytes) -> Output:
    out, err = bytearray(), bytearray()
    readers = [
        asyncio.create_task(_read(process.stdout, out)),
        asyncio.create_task(_read(process.stderr, err)),
        asyncio.create_task(_write(process.stdin, text)),
    ]
    try:
        await _ended(process)
        await asyncio.wait(readers, timeout=GRACE_SECONDS)
    finally:
        _end_group(process.pid)
        # Its pipes are closed then, unless something has left the group.
        await asyncio.wait(readers, timeout=GRACE_SECONDS)
        for reader in readers:
            reader.cancel()
        await asyncio.gather(*readers, return_exceptions=True)
    return Output(out.decode(errors="replace"), err.decode(errors="replace"))


async def _ended(process: asyncio.subprocess.Process) -> None:
    """Its own `wait` returns only when its pipes are closed, which something that it started may
    keep open for ever.
    """
    while process.returncode is None:
        await asyncio.sleep(_LOOK_SECONDS)


async def _read(stream: asyncio.StreamReader | None, into: bytearray) -> None:
    while stream is not None and (part := await stream.read(65_536)):
        # What is over the limit is read and dropped, so that the command does not wait for us.
        into += part[: MAX_OUTPUT_BYTES - len(into)]


async def _write(stream: asyncio.StreamWriter | None, text: bytes) -> None:
    if stream is None:
        return
    # It may end without reading it.
    with contextlib.suppress(ConnectionError, BrokenPipeError):
        stream.write(text)
        await stream.drain()
        stream.close()
        await stream.wait_closed()


@contextmanager
def _registered(running: _Running) -> Iterator[None]:
    with _lock:
        _running.add(running)
    try:
        yield
    finally:
        with _lock:
            _running.discard(running)


def end_commands() -> None:
    """End every command that this process has started, and remove its folder."""
    with _lock:
        left = list(_running)
    for running in left:
        _end_group(running.pid)
        shutil.rmtree(running.folder, ignore_errors=True)


def _end_group(pid: int) -> None:
    """The process and what it started. One that has ended by itself leaves its group behind."""
    if sys.platform == "win32":
        subprocess.run(["taskkill", "/T", "/F", "/PID", str(pid)], capture_output=True, check=False)
        return
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)
