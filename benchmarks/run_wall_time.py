"""A whole run on a slow model: beside its critical path, and beside one example after another.

The critical path is one latency for each batch and one for each call of the reflection model: what
remains if every batch goes out at once and nothing else takes time.
"""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from benchmarks.benchmark import Benchmark, Row
from benchmarks.interrupted_runs import script
from benchmarks.scripted_model import scripted_model
from benchmarks.timing import seconds
from stash_mcp.models import Candidate, Example, Message, RunRequest, RunResult
from stash_mcp.optimization.identity import Identity, ModelIdentifier
from stash_mcp.optimization.limits import Limits
from stash_mcp.optimization.llm import ChatModel
from stash_mcp.optimization.optimize import Parts, run_optimization
from stash_mcp.optimization.reflection import ModelReflector

TARGET = 1.25
EXAMPLES = 20
AT_ONCE = 3


@dataclass(frozen=True)
class Size:
    delay: float
    budget: int


@dataclass
class _Monitor:
    """Counts the batches of a run."""

    batches: int = 0
    proposals: int = field(default=0)

    def phase(self, name: str, metric_calls: bool = False) -> None: ...

    def replied(self, done: int, total: int) -> None:
        self.batches += done == total

    def identified(self, identity: Identity) -> None: ...

    def proposed(self, number: int) -> None:
        self.proposals = number

    def refused(self, reason: str) -> None: ...

    def turned_down(self, before: float, after: float) -> None: ...

    def scored(self, candidate: Candidate) -> None: ...

    def rejected(self, count: int, total: int, words: str) -> None: ...

    def log(self, message: str) -> None: ...


class _HabitScorer:
    """A score that takes no time: this measures the run, not the reward model."""

    def score(self, texts: Sequence[str]) -> list[float]:
        return [min(0.9, 0.1 + len(text.rpartition("assistant: ")[2]) / 200) for text in texts]


def run(size: Size) -> list[Row]:
    together, monitor, reflections = _timed(size, concurrency=EXAMPLES)
    one_by_one, _, _ = _timed(size, concurrency=1)
    path = (monitor.batches + reflections) * size.delay
    at_once, several, _ = _timed(size, concurrency=2 * EXAMPLES, at_once=AT_ONCE)
    counted = f"{monitor.batches} batches, {reflections} reflections, latency {size.delay} s"
    return [
        Row(
            f"a run beside its critical path (target: {TARGET}; {counted})",
            seconds(together),
            seconds(path),
            together / path,
            1,
        ),
        Row(
            "a run beside one example after another",
            seconds(together),
            seconds(one_by_one),
            together / one_by_one,
            1,
        ),
        Row(
            f"{AT_ONCE} proposals at once beside one, seconds a proposal",
            seconds(at_once / max(1, several.proposals)),
            seconds(together / max(1, monitor.proposals)),
            (at_once / max(1, several.proposals)) / (together / max(1, monitor.proposals)),
            1,
        ),
    ]


def _timed(size: Size, concurrency: int, at_once: int = 1) -> tuple[float, _Monitor, int]:
    """Seconds, what was counted, calls of the reflection model."""
    monitor = _Monitor()
    with scripted_model(script, size.delay) as traffic:
        task = ChatModel("openai/task", traffic.base_url, max_concurrency=concurrency)
        reflection = ChatModel("openai/reflection", traffic.base_url)
        # The first call loads the client library; it is none of the run's.
        asyncio.run(_warm_up(traffic.base_url))
        began = time.perf_counter()
        _run(size, task, reflection, monitor, at_once)
        took = time.perf_counter() - began
    return took, monitor, reflection.usage.calls


async def _warm_up(base_url: str) -> None:
    await ChatModel("openai/warm", base_url).ask([Message(role="user", content="hello")])


def _run(
    size: Size, task: ChatModel, reflection: ChatModel, monitor: _Monitor, at_once: int
) -> RunResult:
    request = RunRequest(
        reward_model_id="none",
        task_model=task.model,
        reflection_model=reflection.model,
        max_metric_calls=size.budget,
        proposals_at_once=at_once,
        skill_name="parcels",
        skill_description="How to answer about parcels.",
    )
    parts = Parts(
        task,
        _HabitScorer(),
        ModelIdentifier(reflection),
        lambda identity: ModelReflector(reflection, identity),
        Limits(request),
    )
    return run_optimization(request, _examples(), parts, monitor)


def _examples() -> list[Example]:
    return [
        Example(
            trace_id=f"talk-{number:02d}",
            system=None,
            messages=(Message(role="user", content=f"hello {number} where is my parcel"),),
            feedback=("Ask for the order number.",),
        )
        for number in range(EXAMPLES)
    ]


BENCHMARK = Benchmark(
    run,
    smallest=Size(delay=0.01, budget=98),
    quick=Size(delay=0.1, budget=120),
    full=Size(delay=0.3, budget=200),
)
