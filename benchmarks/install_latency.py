"""How long a finished skill takes from the worker's result on disk to its place.

Measured from outside, by looking for both files every millisecond: by the worker at a run's end,
and by `stash-skills watch` where the worker did not. Each is a process of its own, and the worker's
is the real one but for the search, which ends at once. And what `stash-skills watch` costs while
nothing happens.
"""

import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks.benchmark import Benchmark, Row
from benchmarks.finished_runs import FinishedRuns
from stash_mcp.storage.files import try_lock

TARGET_SECONDS = 0.25
_LOOK_SECONDS = 0.001
_PATIENCE_SECONDS = 60.0
_LONGEST_PAUSE_SECONDS = 0.1
_PRIMED_SECONDS = 4
_ROOT = Path(__file__).parents[1]

# Everything of a worker but the search.
_WORKER = """
import sys
from pathlib import Path
from benchmarks.finished_runs import FinishedRuns, number_of, result_of
from stash_mcp.worker import drain

drain._work = lambda kind: lambda job, *rest: result_of(number_of(job.id))
drain.drain(FinishedRuns(Path(sys.argv[1])).settings)
"""
# The command as it is, and a thread that asks twice what its process has used.
_IDLE = """
import os, sys, threading, time
from stash_mcp.cli.main import main

def ask():
    while "watchfiles" not in sys.modules:
        time.sleep(0.1)
    time.sleep(float(sys.argv[1]))
    before = time.process_time()
    time.sleep(float(sys.argv[2]))
    os.write(1, repr(time.process_time() - before).encode())
    os._exit(0)

threading.Thread(target=ask).start()
main(["watch"])
"""


@dataclass(frozen=True)
class Size:
    runs: int
    idle_seconds: float


def run(size: Size) -> list[Row]:
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        by_worker = _by_worker(FinishedRuns(Path(folder, "worker")), size.runs)
        by_watcher = _by_watcher(FinishedRuns(Path(folder, "watcher")), size.runs)
        idle = _idle(FinishedRuns(Path(folder, "idle")), size.idle_seconds)
    return [
        *_rows("by the worker", by_worker),
        *_rows("by `watch`", by_watcher),
        Row(
            f"CPU time of `watch` in {size.idle_seconds:g} s without an event",
            f"{idle * 1000:.0f} ms",
            "-",
            n=1,
        ),
    ]


def _rows(who: str, latencies: Sequence[float]) -> list[Row]:
    target = f"target: {TARGET_SECONDS * 1000:.0f} ms"

    def shown(value: float) -> str:
        return f"{value * 1000:.0f} ms"

    last = statistics.quantiles(latencies, n=100, method="inclusive")[-1]
    return [
        Row(
            f"from result.json to SKILL.md, {who}, median ({target})",
            shown(statistics.median(latencies)),
            "-",
            n=len(latencies),
        ),
        Row("the same, 99th percentile", shown(last), "-", n=len(latencies)),
    ]


def _by_worker(runs: FinishedRuns, count: int) -> list[float]:
    _queue(runs, count)
    with _process([sys.executable, "-c", _WORKER, str(runs.root)], runs):
        return [_latency(runs, number) for number in range(count)]


def _by_watcher(runs: FinishedRuns, count: int) -> list[float]:
    _queue(runs, count)
    store, draw, latencies = runs.store(), random.Random(0), []
    # Held as a living worker holds it, or the watch would start one for what is queued.
    with try_lock(runs.settings.worker_lock_path) as ours:
        if not ours:
            raise RuntimeError("a worker is at work on a library made just now")
        with _process([sys.executable, "-m", "stash_mcp", "watch"], runs) as watch:
            _wait_for_watch(watch)
            for number in range(count):
                store.claim_next()
                runs.finish(store, number)
                latencies.append(_latency(runs, number))
                # At no fixed place in the watch's own rhythm.
                time.sleep(draw.uniform(0, _LONGEST_PAUSE_SECONDS))
    return latencies


def _queue(runs: FinishedRuns, count: int) -> None:
    runs.root.mkdir()
    for number in range(count):
        runs.queue(number)


def _latency(runs: FinishedRuns, number: int) -> float:
    """Seconds between the first sights of the run's result and of its skill."""
    began = _seen(runs.folder(number).result_path)
    return _seen(runs.skill_file(number)) - began


def _seen(path: Path) -> float:
    deadline = time.perf_counter() + _PATIENCE_SECONDS
    while not path.exists():
        if time.perf_counter() > deadline:
            raise RuntimeError(f"{path} did not come within {_PATIENCE_SECONDS:.0f} s")
        time.sleep(_LOOK_SECONDS)
    return time.perf_counter()


@contextmanager
def _process(command: list[str], runs: FinishedRuns) -> Iterator["subprocess.Popen[str]"]:
    with subprocess.Popen(
        command,
        cwd=_ROOT,
        env={**os.environ, **runs.environment},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def _wait_for_watch(watch: "subprocess.Popen[str]") -> None:
    if watch.stderr is None or "Watching" not in watch.stderr.readline():
        raise RuntimeError("the watch did not start")


def _idle(runs: FinishedRuns, seconds: float) -> float:
    """CPU seconds, of a library with one run, once the watch is primed."""
    _queue(runs, 1)
    store = runs.store()
    store.claim_next()
    runs.finish(store, 0)
    said = subprocess.run(
        [sys.executable, "-c", _IDLE, str(_PRIMED_SECONDS), str(seconds)],
        cwd=_ROOT,
        env={**os.environ, **runs.environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        timeout=seconds + _PATIENCE_SECONDS,
        check=True,
    )
    # After what the watch itself has said.
    return float(said.stdout.split()[-1])


BENCHMARK = Benchmark(run, smallest=Size(2, 0.5), quick=Size(20, 5), full=Size(200, 20))
