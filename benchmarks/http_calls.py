"""200 mixed tool calls over HTTP, 20 at a time, while a reward model is trained on every core.

Two clients of each era of the protocol share one server process and a library of some hundreds of
conversations. Counted are errors; the latency of a call, beside the same calls before the training;
and how long the server's event loop was held up, beside the loop of a server that does nothing, at
the same time on the same machine. See `loop_lag` for what the measures of that mean.
"""

import os
import secrets
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

import anyio
import httpx2
from mcp import Client
from mcp.client.client import ConnectMode
from mcp.client.streamable_http import streamable_http_client

from benchmarks.benchmark import Benchmark, Row
from benchmarks.filled_library import CANDIDATES, fill
from benchmarks.loop_lag import PATH, Lag
from benchmarks.timing import seconds
from stash_mcp.backends.base import Backend, TrainOrder
from stash_mcp.backends.local import open_local_backend
from stash_mcp.demo.embedded import minilm_folder
from stash_mcp.models import JobStatus
from stash_mcp.settings import Settings
from stash_mcp.storage.files import try_lock

AT_A_TIME = 20
TARGET_SECONDS = 0.05
_CLIENTS: tuple[ConnectMode, ...] = ("auto", "legacy", "auto", "legacy")
_PATIENCE_SECONDS = 60.0

Call = tuple[str, dict[str, Any]]


@dataclass(frozen=True)
class Size:
    """trains: a worker is started; without, the numbers say nothing of a busy machine."""

    calls: int
    traces: int
    runs: int
    trains: bool = True


@dataclass
class _Volley:
    """What one round of calls gave.

    latencies: seconds of each call that was not asked to wait. errors: what those said that failed.
    """

    latencies: list[float] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    lag: Lag = field(default_factory=Lag)
    idle_lag: Lag = field(default_factory=Lag)


def run(size: Size) -> list[Row]:
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        settings = Settings(Path(folder, "home"), Path(folder, "project"), Path(folder, "claude"))
        settings.project_dir.mkdir()
        backend = open_local_backend(settings)
        fill(backend, settings, size.traces, size.runs)
        environment = {
            **os.environ,
            "STASH_MCP_HOME": str(settings.home),
            "CLAUDE_PROJECT_DIR": str(settings.project_dir),
            "STASH_MCP_TOKEN": secrets.token_urlsafe(),
        }
        with _server(environment) as url, _server(environment, "--idle") as idle:
            token = environment["STASH_MCP_TOKEN"]
            calm = anyio.run(_volley, url, idle, token, _calls(size, "run-0"))
            with _training(backend, settings, size) as job:
                busy = anyio.run(_volley, url, idle, token, _calls(size, job))
    return _rows(size.calls, calm, busy)


def _rows(count: int, calm: _Volley, busy: _Volley) -> list[Row]:
    first = f": {busy.errors[0]}" if busy.errors else ""
    rows = [Row(f"errors of {count} calls{first}", str(len(busy.errors)), "0", n=count)]
    for what, take in (("median", median), ("99th percentile", _percentile_99)):
        ours, reference = take(busy.latencies), take(calm.latencies)
        rows.append(
            Row(
                f"a call while a model is trained, {what}; reference: before it",
                seconds(ours),
                seconds(reference),
                ours / reference,
                len(busy.latencies),
            )
        )
    target = f"target: under {TARGET_SECONDS * 1000:.0f} ms"
    lag, idle, before = busy.lag, busy.idle_lag, calm.lag
    for what, ours, reference in (
        (f"the event loop held up by its own process, longest ({target})", lag.own, idle.own),
        ("held up by anything, the scheduler too, longest", lag.late, idle.late),
        ("CPU time of the loop between two ticks, most", lag.busy, idle.busy),
        ("held up by its own process before the training", before.own, calm.idle_lag.own),
    ):
        rows.append(Row(what, seconds(ours), seconds(reference), n=busy.lag.ticks))
    return rows


def _percentile_99(values: Sequence[float]) -> float:
    return sorted(values)[int(0.99 * (len(values) - 1))]


# --- the processes ---


@contextmanager
def _server(environment: dict[str, str], *options: str) -> Iterator[str]:
    command = [sys.executable, "-m", "benchmarks.http_server", *options]
    with subprocess.Popen(
        command,
        env=environment,
        cwd=Path(__file__).parents[1],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            if process.stdout is None:
                raise RuntimeError("the server was started without a pipe")
            yield process.stdout.readline().strip()
        finally:
            process.kill()


@contextmanager
def _training(backend: Backend, settings: Settings, size: Size) -> Iterator[str]:
    """A training under way in a worker of its own; gives its id."""
    if not size.trains:
        yield "run-0"
        return
    model = backend.train_reward_model(
        TrainOrder(name="reviews", base_model=str(minilm_folder()), epochs=100)
    )
    try:
        _wait_until_it_trains(backend, model.id)
        yield model.id
        if backend.get_reward_model(model.id).status is not JobStatus.RUNNING:
            raise RuntimeError("the training was over before the calls were")
    finally:
        backend.cancel(model.id)
        with try_lock(settings.worker_lock_path, timeout=_PATIENCE_SECONDS):
            pass


def _wait_until_it_trains(backend: Backend, model_id: str) -> None:
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while not (now := backend.get_reward_model(model_id).progress) or now.done == 0:
        if time.monotonic() > deadline:
            raise RuntimeError(f"no step of the training within {_PATIENCE_SECONDS:.0f} s")
        time.sleep(0.1)


# --- the calls ---


def _calls(size: Size, job_id: str) -> list[Call]:
    """Every kind in turn: lists, single things, waiting, and writing."""
    return [_call(number, size, job_id) for number in range(size.calls)]


def _call(number: int, size: Size, job_id: str) -> Call:
    trace, run_id = f"trace-{number % size.traces}", f"run-{number % size.runs}"
    line = f'{{"id": "new-{number}", "steps": [{{"role": "user", "content": "Hello?"}}]}}'
    calls: tuple[Call, ...] = (
        ("list_traces", {"limit": 50}),
        ("get_trace", {"trace_id": trace}),
        ("list_runs", {}),
        ("get_run", {"run_id": run_id}),
        ("get_run", {"run_id": job_id, "wait_seconds": 1}),
        ("list_candidates", {"run_id": run_id}),
        ("list_candidates", {"run_id": run_id, "candidate": CANDIDATES - 1}),
        ("list_reward_models", {}),
        ("annotate_trace", {"trace_id": trace, "comment": f"Remark {number}."}),
        ("import_traces", {"data": line}),
    )
    return calls[number % len(calls)]


async def _volley(url: str, idle: str, token: str, calls: list[Call]) -> _Volley:
    volley = _Volley()
    async with AsyncExitStack() as stack:
        clients = [await stack.enter_async_context(_client(url, token, era)) for era in _CLIENTS]
        await _lag(url), await _lag(idle)
        waiting = enumerate(calls)
        async with anyio.create_task_group() as tasks:
            for _ in range(min(AT_A_TIME, len(calls))):
                tasks.start_soon(_caller, clients, waiting, volley)
        volley.lag, volley.idle_lag = await _lag(url), await _lag(idle)
    return volley


async def _caller(
    clients: list[Client], waiting: Iterator[tuple[int, Call]], volley: _Volley
) -> None:
    for number, (tool, arguments) in waiting:
        began = time.perf_counter()
        answer = await clients[number % len(clients)].call_tool(tool, arguments)
        if "wait_seconds" not in arguments:
            volley.latencies.append(time.perf_counter() - began)
        if answer.is_error:
            volley.errors.append(f"{tool}: {answer.content}")


@asynccontextmanager
async def _client(url: str, token: str, era: ConnectMode) -> AsyncIterator[Client]:
    headers = {"Authorization": f"Bearer {token}"}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=_PATIENCE_SECONDS) as http,
        Client(streamable_http_client(url, http_client=http), mode=era) as client,
    ):
        yield client


async def _lag(url: str) -> Lag:
    """Since the last time that it was asked for."""
    async with httpx2.AsyncClient() as http:
        answer = await http.get(f"{url.rpartition('/')[0]}{PATH}")
        return Lag(**answer.json())


BENCHMARK = Benchmark(
    run,
    smallest=Size(calls=10, traces=10, runs=1, trains=False),
    quick=Size(calls=100, traces=300, runs=20),
    full=Size(calls=200, traces=300, runs=20),
)
