"""Whether every finished skill is installed once, whoever competes for it and whoever is killed.

A worker ends one run after the other and settles each as a worker does; three watchers look all
the time, as the server and `stash-skills watch` do at a hint. One of the watchers is killed with
SIGKILL again and again, wherever it stands, and another one takes its place.
"""

import json
import multiprocessing
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from multiprocessing.context import SpawnContext, SpawnProcess
from pathlib import Path

from benchmarks.benchmark import Benchmark, Row
from benchmarks.finished_runs import FinishedRuns, id_of, text_of
from stash_mcp.runs.installing import InstallQueue
from stash_mcp.skills.manifest import Manifest
from stash_mcp.storage.database import Database
from stash_mcp.storage.files import try_lock

WATCHERS = 3
_PATIENCE_SECONDS = 300.0
_LOOK_SECONDS = 0.02


@dataclass(frozen=True)
class Size:
    runs: int
    kills: int


@dataclass(frozen=True)
class Report:
    """Per run: how often it was settled, installed, and told. wrong_files: not the best text."""

    runs: int
    kills: int
    settled: Counter[str]
    installed: Counter[str]
    told: Counter[str]
    waiting: int
    wrong_files: int
    seconds: float

    def not_once(self, counted: Counter[str]) -> int:
        return sum(counted[id_of(number)] != 1 for number in range(self.runs))


def run(size: Size) -> list[Row]:
    report = compete(size)
    return [
        Row(
            f"runs not {what} exactly once, by {WATCHERS} watchers and a worker, "
            f"{report.kills} killed",
            str(report.not_once(counted)),
            "0",
            n=report.runs,
        )
        for what, counted in (
            ("settled", report.settled),
            ("installed", report.installed),
            ("told", report.told),
        )
    ] + [Row("skills that are not whole", str(report.wrong_files), "0", n=report.runs)]


def compete(size: Size) -> Report:
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        runs = FinishedRuns(Path(folder))
        for number in range(size.runs):
            runs.queue(number)
        began = time.monotonic()
        kills = _race(runs, size)
        return _report(runs, size.runs, kills, time.monotonic() - began)


def _race(runs: FinishedRuns, size: Size) -> int:
    """Until nothing waits; returns how many were killed."""
    context = multiprocessing.get_context("spawn")
    victim = _start(context, _watch, runs, "victim-0", False)
    others = [
        _start(context, _watch, runs, f"watcher-{number}", True) for number in range(WATCHERS - 1)
    ]
    worker = _start(context, _work, runs, "worker", size.runs)
    kills, deadline = 0, time.monotonic() + _PATIENCE_SECONDS
    queue = InstallQueue(Database(runs.settings.library_path))
    while (worker.is_alive() or queue.waiting()) and time.monotonic() < deadline:
        installed = sum(1 for _ in runs.skills_dir.glob("*"))
        if kills < size.kills and installed > size.runs * (kills + 1) / (size.kills + 1):
            kills += 1
            victim.kill()
            victim.join()
            victim = _start(context, _watch, runs, f"victim-{kills}", False)
        time.sleep(_LOOK_SECONDS)
    (runs.root / "stop").touch()
    for process in (worker, victim, *others):
        process.join(_PATIENCE_SECONDS)
        if process.exitcode:
            raise RuntimeError(f"{process.name} ended with {process.exitcode}")
    return kills


def _start(
    context: SpawnContext, target: Callable[..., None], runs: FinishedRuns, *arguments: object
) -> SpawnProcess:
    process = context.Process(target=target, args=(runs.root, *arguments), name=str(arguments[0]))
    process.start()
    return process


# --- in processes of their own ---


def _watch(root: Path, name: str, takes_notices: bool) -> None:
    """takes_notices: what a process was told that is then killed is told to nobody else."""
    backend = FinishedRuns(root).backend()
    with (root / f"{name}.jsonl").open("a", encoding="utf-8") as said:
        while not (root / "stop").exists():
            backend.reconcile()
            if takes_notices:
                for notice in backend.take_notices():
                    said.write(json.dumps(notice.run_id) + "\n")


def _work(root: Path, name: str, count: int) -> None:
    runs = FinishedRuns(root)
    backend, store = runs.backend(), runs.store()
    with try_lock(runs.settings.worker_lock_path) as ours:
        if not ours:
            raise RuntimeError(f"the {name} found another one")
        for number in range(count):
            store.claim_next()
            runs.finish(store, number)
            backend.reconcile()


# --- what came of it ---


def _report(runs: FinishedRuns, count: int, kills: int, seconds: float) -> Report:
    backend = runs.backend()
    told = [notice.run_id for notice in backend.take_notices()]
    for path in runs.root.glob("*.jsonl"):
        told += map(json.loads, path.read_text(encoding="utf-8").splitlines())
    numbers = range(count)
    notes = ((id_of(n), event.message) for n in numbers for event in backend.events(id_of(n)))
    return Report(
        runs=count,
        kills=kills,
        settled=Counter(run_id for run_id, note in notes if "is installed:" in note),
        installed=Counter(_installed_runs(runs)),
        told=Counter(told),
        waiting=sum(run.install_state == "waiting" for run in backend.list_runs()),
        wrong_files=sum(not _is_whole(runs, number) for number in numbers),
        seconds=seconds,
    )


def _installed_runs(runs: FinishedRuns) -> Iterable[str]:
    return (row.run_id for row in Manifest(Database(runs.settings.library_path)).all())


def _is_whole(runs: FinishedRuns, number: int) -> bool:
    file = runs.skill_file(number)
    return file.exists() and file.read_text(encoding="utf-8") == text_of(number, best=True)


BENCHMARK = Benchmark(run, smallest=Size(4, 0), quick=Size(100, 1), full=Size(500, 5))
