"""How long an event loop is held up, measured inside it, and by whom.

A task sleeps for a few milliseconds again and again. `late`: how much longer it took until it ran
again, whoever held it up. `own`: the part of it that the process itself is to blame for, which is
a callback, or another thread that has the interpreter; the rest, the loop's thread was ready to run
and the scheduler gave the processor to somebody else. Where the system does not tell that (all but
Linux), `own` is `late`. `busy`: the CPU time of the loop's thread meanwhile.
"""

import asyncio
import threading
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

PATH = "/lag"
_TICK_SECONDS = 0.005


@dataclass
class Lag:
    """Seconds, the largest of all ticks."""

    late: float = 0.0
    own: float = 0.0
    busy: float = 0.0
    ticks: int = 0

    def add(self, late: float, own: float, busy: float) -> None:
        self.late = max(self.late, late)
        self.own = max(self.own, own)
        self.busy = max(self.busy, busy)
        self.ticks += 1


class Monitored:
    """The app with a watch on its event loop; GET /lag tells the lag since the last time."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._lag = Lag()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            watch = asyncio.create_task(self._watch())
            await self._app(scope, receive, send)
            watch.cancel()
        elif scope["path"] == PATH:
            seen, self._lag = self._lag, Lag()
            await JSONResponse(asdict(seen))(scope, receive, send)
        else:
            await self._app(scope, receive, send)

    async def _watch(self) -> None:
        while True:
            began, cpu, queued = time.perf_counter(), time.thread_time(), _queued_seconds()
            await asyncio.sleep(_TICK_SECONDS)
            late = time.perf_counter() - began - _TICK_SECONDS
            waited = _queued_seconds() - queued
            self._lag.add(late, max(0.0, late - waited), time.thread_time() - cpu)


def _queued_seconds() -> float:
    """How long this thread has been ready to run and did not, since its start."""
    path = Path(f"/proc/self/task/{threading.get_native_id()}/schedstat")
    try:
        return int(path.read_text("ascii").split()[1]) / 1e9
    except OSError:
        return 0.0
