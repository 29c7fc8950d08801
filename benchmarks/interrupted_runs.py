"""Runs whose worker is killed at random moments, beside the same runs left alone.

Counted: results that differ from the undisturbed one, candidates that were in the library before a
kill and are missing or changed at the end, and requests that a worker sent although their answer
had been kept before. An answer that was on its way when the kill came was never received, and is
asked for again; those are counted apart.

The workers are forked from a process that has loaded the libraries, so that many small runs fit
into minutes; they are real processes, killed with SIGKILL.
"""

import json
import multiprocessing
import random
import shutil
import signal
import sqlite3
import tempfile
import time
from collections import Counter
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks.benchmark import Benchmark, Row
from benchmarks.scripted_model import Request, Traffic, scripted_model
from stash_mcp.backends.base import RunOrder
from stash_mcp.backends.local import LocalBackend
from stash_mcp.demo.embedded import minilm_folder
from stash_mcp.models import JobStatus, Message, PreferencePair, RunResult
from stash_mcp.optimization.memory import Memory
from stash_mcp.optimization.reflection import END, START
from stash_mcp.reward.train import train
from stash_mcp.runs.folder import JobFolder
from stash_mcp.settings import Settings
from stash_mcp.storage.calls import CallStore
from stash_mcp.worker.drain import drain

EXAMPLES = 5
DELAY = 0.02
_MOST_KILLS_A_RUN = 8
_PATIENCE_SECONDS = 60.0
_HABITS = ("asks for the order number", "says when an answer comes", "names the problem")


@dataclass(frozen=True)
class Size:
    kills: int
    seed: int = 0


@dataclass
class Report:
    runs: int = 0
    kills: int = 0
    different_results: int = 0
    lost_candidates: int = 0
    repeated_answers: int = 0
    in_flight: int = 0
    """Requests sent again because the kill came before their answer was kept."""
    requests: int = 0


def disturb(size: Size, base_model: Path) -> Report:
    """Kill workers until there were `size.kills` kills; base_model: of the reward model."""
    draw = random.Random(size.seed)
    report = Report()
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["benchmarks.preloaded"])
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        checkpoint = Path(folder, "checkpoint")
        train(
            preference_pairs(),
            base_model=str(base_model),
            output_dir=checkpoint,
            learning_rate=0.01,
        )
        while report.kills < size.kills:
            place = Path(folder, f"run-{report.runs}")
            _one_run(place, checkpoint, draw, report, size.kills - report.kills, context)
            shutil.rmtree(place, ignore_errors=True)
    return report


def preference_pairs() -> list[PreferencePair]:
    return [
        PreferencePair(
            chosen=f"user: hello {number}\n\nassistant: {_HABITS[number % 3]} please",
            rejected=f"user: hello {number}\n\nassistant: no idea",
            chosen_trace_id=f"good-{number}",
            rejected_trace_id=f"bad-{number}",
            granularity="step",
        )
        for number in range(12)
    ]


def _one_run(
    place: Path, checkpoint: Path, draw: random.Random, report: Report, kills: int, context: Any
) -> None:
    seed = draw.randrange(1_000_000)
    with scripted_model(script, DELAY) as traffic:
        calm = Home(place / "calm", checkpoint, traffic, seed)
        began = time.monotonic()
        calm.work(context).join(_PATIENCE_SECONDS)
        duration = time.monotonic() - began
        undisturbed = calm.result()
        traffic.requests.clear()
        home = Home(place / "disturbed", checkpoint, traffic, seed)
        for _ in range(min(kills, _MOST_KILLS_A_RUN)):
            if home.is_over:
                break
            home.kill_after(draw.uniform(0, duration), context, report)
        home.finish(context)
    report.runs += 1
    report.requests += len(traffic.requests)
    report.different_results += home.result() != undisturbed
    report.lost_candidates += home.lost_candidates()


class Home:
    """One library with one run in it."""

    def __init__(self, place: Path, checkpoint: Path, traffic: Traffic, seed: int) -> None:
        self._settings = Settings(place / "home", place / "project", place / "claude")
        numbers = iter(range(1000))
        self.backend = LocalBackend(
            self._settings,
            clock=lambda: datetime.now(UTC),
            new_id=lambda: f"{next(numbers):08d}",
            start_worker=lambda settings: False,
        )
        self._traffic = traffic
        self._seen_candidates: dict[int, str] = {}
        model = self.backend.import_reward_model(checkpoint)
        self.backend.import_traces(_conversations(), annotations=_comments())
        order = RunOrder(
            reward_model_id=model.id,
            task_model="openai/task",
            task_api_base=traffic.base_url,
            reflection_model="openai/reflection",
            reflection_api_base=traffic.base_url,
            skill_name="parcels",
            skill_description="How to answer about parcels.",
            random_seed=seed,
        )
        self.run_id = self.backend.start_run(order).run.id

    @property
    def is_over(self) -> bool:
        return self.backend.get_run(self.run_id).status is JobStatus.SUCCEEDED

    def work(self, context: Any) -> Any:
        """A worker's process, started."""
        process = context.Process(target=drain, args=(self._settings,))
        process.start()
        return process

    def kill_after(self, seconds: float, context: Any, report: Report) -> None:
        kept = self._kept()
        before = len(self._traffic.requests)
        process = self.work(context)
        process.join(seconds)
        if process.exitcode is None:
            report.kills += 1
            process.kill()
        process.join(_PATIENCE_SECONDS)
        self._count(kept, before, report)
        for candidate in self.backend.list_candidates(self.run_id):
            self._seen_candidates[candidate.number] = candidate.skill

    def finish(self, context: Any) -> None:
        """Let a worker end the run; deaths at one place may have failed it before."""
        for _ in range(3):
            if self.backend.get_run(self.run_id).status is JobStatus.FAILED:
                self.backend.resume_run(self.run_id)
            self.work(context).join(_PATIENCE_SECONDS)
            if self.is_over:
                return
        run = self.backend.get_run(self.run_id)
        raise RuntimeError(f"the run is {run.status}: {run.reason}")

    def result(self) -> RunResult:
        path = JobFolder(self._settings.runs_dir / self.run_id).result_path
        return RunResult.model_validate_json(path.read_text(encoding="utf-8"))

    def lost_candidates(self) -> int:
        now = {row.number: row.skill for row in self.backend.list_candidates(self.run_id)}
        return sum(now.get(number) != skill for number, skill in self._seen_candidates.items())

    def _kept(self) -> set[str]:
        if not self._settings.calls_path.exists():
            return set()
        with sqlite3.connect(self._settings.calls_path) as connection:
            rows = connection.execute("SELECT key FROM calls").fetchall()
        connection.close()
        return {row[0] for row in rows}

    def _count(self, kept: set[str], before: int, report: Report) -> None:
        """Of the requests since `before`: those whose answer had been kept, and repeated others."""
        memory = Memory(CallStore(self._settings.calls_path, lambda: datetime.now(UTC)))
        asked = Counter(self._key(memory, request) for request in self._traffic.requests)
        new = [self._key(memory, request) for request in self._traffic.requests[before:]]
        report.repeated_answers += sum(key in kept for key in new)
        report.in_flight += sum(asked[key] > 1 and key not in kept for key in set(new))

    def _key(self, memory: Memory, request: Request) -> str:
        messages = [Message(**message) for message in request["messages"]]
        model = f"openai/{request['model']}"
        return memory.key(model, self._traffic.base_url, messages, None, 0)


def script(request: Request) -> str:
    """The task model does what its skill says; reflection adds one habit after the other."""
    last = request["messages"][-1]["content"]
    if START in last:
        present = last.partition(START)[2].partition(END)[0]
        missing = [habit for habit in _HABITS if habit not in present]
        return f"{START}\n{present.strip()}\n- {(missing or ['is brief'])[0]}\n{END}"
    system = request["messages"][0]["content"]
    return " ".join([habit for habit in _HABITS if habit in system] or ["no idea"])


def _conversations() -> bytes:
    rows = [
        {
            "id": f"talk-{number}",
            "steps": [
                {"role": "user", "content": f"hello {number} where is my parcel"},
                {"role": "assistant", "content": "no idea"},
            ],
        }
        for number in range(EXAMPLES)
    ]
    return "\n".join(json.dumps(row) for row in rows).encode()


def _comments() -> bytes:
    rows = [
        {
            "trace_id": f"talk-{number}",
            "step_index": 1,
            "comment": _HABITS[number % 3],
            "created_at": "2026-01-01T00:00:00+00:00",
        }
        for number in range(EXAMPLES)
    ]
    return "\n".join(json.dumps(row) for row in rows).encode()


def run(size: Size) -> list[Row]:
    if not hasattr(signal, "SIGKILL"):
        return [Row("skipped: this system has no SIGKILL")]
    report = disturb(size, minilm_folder())
    counts = (
        ("results unlike the undisturbed run's", report.different_results, "0", report.runs),
        ("candidates lost", report.lost_candidates, "0", report.runs),
        ("kept answers asked for again", report.repeated_answers, "0", report.kills),
        ("answers not kept yet when the kill came", report.in_flight, "-", report.kills),
    )
    return [Row(what, str(ours), aim, n=n) for what, ours, aim, n in counts]


BENCHMARK = Benchmark(run, smallest=Size(2), quick=Size(15), full=Size(100))
