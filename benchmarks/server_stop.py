"""How fast the server is gone while a `get_run` waits in it.

For each way in which a client ends it: the end of its input, SIGINT, SIGTERM. Measured until the
process can be reaped. The job that is waited for stays in the queue: its worker's lock is held
here. There is no reference: an empty server of the SDK hangs after SIGINT.
"""

import json
import os
import signal
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from benchmarks.benchmark import Benchmark, Row
from benchmarks.server_life import OURS, Life, life
from benchmarks.timing import seconds
from stash_mcp.settings import load_settings
from stash_mcp.storage.files import try_lock

TARGET = "300 ms"
_RATINGS = 12


@dataclass(frozen=True)
class Size:
    repetitions: int


def run(size: Size) -> list[Row]:
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder, "home")
        home.mkdir()
        settings = load_settings({**os.environ, "STASH_MCP_HOME": str(home)})
        with try_lock(settings.worker_lock_path):
            job = _queued_training(home)
            # The first one does not count: it fills the disk's cache.
            _seconds_to_end(home, job, Life.close_input)
            return [row for way in _ways().items() for row in _rows(way, home, job, size)]


def _ways() -> dict[str, Callable[[Life], object]]:
    ways: dict[str, Callable[[Life], object]] = {"the end of its input": Life.close_input}
    if sys.platform != "win32":
        ways["SIGINT"] = lambda server: server.process.send_signal(signal.SIGINT)
        ways["SIGTERM"] = lambda server: server.process.terminate()
    return ways


def _rows(
    way: tuple[str, Callable[[Life], object]], home: Path, job: str, size: Size
) -> tuple[Row, Row]:
    name, leave = way
    taken = [_seconds_to_end(home, job, leave) for _ in range(size.repetitions)]
    return (
        Row(
            f"from {name} to its end, median (target: {TARGET})",
            seconds(median(taken)),
            "-",
            n=len(taken),
        ),
        Row("the same, the slowest", seconds(max(taken)), "-", n=len(taken)),
    )


def _seconds_to_end(home: Path, job: str, leave: Callable[[Life], object]) -> float:
    with life(OURS, home) as server:
        server.initialize()
        arguments = {"run_id": job, "wait_seconds": 50}
        params = {"name": "get_run", "arguments": arguments, "_meta": {"progressToken": "here"}}
        # Its first notification of progress: now it waits.
        if server.ask(2, "tools/call", params).get("method") != "notifications/progress":
            raise RuntimeError("get_run did not wait")
        return server.seconds_to_end(lambda: leave(server))


def _queued_training(home: Path) -> str:
    with life(OURS, home) as server:
        server.initialize()
        imported = {"data": _conversations(), "annotations_data": _ratings()}
        server.ask(2, "tools/call", {"name": "import_traces", "arguments": imported})
        answer = server.ask(3, "tools/call", {"name": "train_reward_model", "arguments": {}})
        return str(answer["result"]["structuredContent"]["reward_model_id"])


def _conversations() -> str:
    steps = [{"role": "user", "content": "?"}, {"role": "assistant", "content": "!"}]
    return "\n".join(json.dumps({"id": f"c{n}", "steps": steps}) for n in range(_RATINGS))


def _ratings() -> str:
    at = "2026-01-01T00:00:00Z"
    return "\n".join(
        json.dumps({"trace_id": f"c{n}", "rating": -1 if n % 2 else 1, "created_at": at})
        for n in range(_RATINGS)
    )


BENCHMARK = Benchmark(run, smallest=Size(1), quick=Size(5), full=Size(20))
