"""Several processes writing to and reading from one library at once: errors, and rows lost."""

import json
import multiprocessing
import tempfile
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from multiprocessing.pool import Pool
from pathlib import Path

from benchmarks.benchmark import Benchmark, Row
from stash_mcp.backends.base import AnnotationDraft
from stash_mcp.backends.local import LocalBackend
from stash_mcp.errors import StashSkillsError
from stash_mcp.models import JobKind, Progress, TrainRequest
from stash_mcp.runs.store import JobStore
from stash_mcp.settings import Settings
from stash_mcp.storage.database import Database

PROCESSES = 4


@dataclass(frozen=True)
class Size:
    seconds: float


@dataclass(frozen=True)
class _Tally:
    rounds: int
    errors: tuple[str, ...]


def run(size: Size) -> list[Row]:
    with tempfile.TemporaryDirectory() as folder, _pool() as pool:
        home = Path(folder, "home")
        arguments = [(home, number, size.seconds) for number in range(PROCESSES)]
        tallies = pool.starmap(_hammer, arguments)
        rounds = sum(tally.rounds for tally in tallies)
        found = _found(home)
    errors = sum(len(tally.errors) for tally in tallies)
    what = f"{PROCESSES} processes on one library for {size.seconds:.0f} s"
    return [
        Row(f"errors of {what}", str(errors), "0", n=rounds),
        # A round leaves a conversation, an annotation and a finished job.
        Row(f"rows lost by {what}", str(3 * rounds - sum(found)), "0", n=3 * rounds),
    ]


def _pool() -> Pool:
    return multiprocessing.get_context("spawn").Pool(PROCESSES)


def _open(home: Path) -> LocalBackend:
    return LocalBackend(
        Settings(home, home / "project", home / "claude"),
        clock=lambda: datetime.now(UTC),
        new_id=lambda: "unused",
        start_worker=lambda settings: False,
    )


def _hammer(home: Path, number: int, seconds: float) -> _Tally:
    backend = _open(home)
    store = JobStore(Database(home / "library.db"), lambda: datetime.now(UTC))
    rounds, errors = 0, []
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        try:
            _round(backend, store, f"{number}-{rounds}")
            rounds += 1
        except StashSkillsError as error:
            errors.append(str(error))
    return _Tally(rounds, tuple(errors))


def _round(backend: LocalBackend, store: JobStore, name: str) -> None:
    steps = [{"role": "user", "content": name}, {"role": "assistant", "content": "yes"}]
    backend.import_traces(json.dumps({"id": name, "steps": steps}).encode())
    backend.annotate(AnnotationDraft(trace_id=name, step_index=1, rating=1, comment=name))
    store.create(f"rm-{name}", JobKind.TRAIN, name, TrainRequest())
    claimed = store.claim_next()
    if claimed is not None:
        store.report(claimed.id, Progress(phase="training", done=1))
        store.succeed(claimed.id, "{}")
    backend.list_traces(limit=20, offset=0)
    backend.get_trace(name)


def _found(home: Path) -> tuple[int, int, int]:
    backend = _open(home)
    annotations = sum(1 for _ in backend.export_annotations())
    finished = sum(model.status.is_final for model in backend.list_reward_models())
    return backend.list_traces(limit=1, offset=0).total, annotations, finished


BENCHMARK = Benchmark(run, smallest=Size(0.5), quick=Size(5), full=Size(60))
