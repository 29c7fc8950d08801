"""How close a batch of task-model calls comes to its critical path.

The model is a server on loopback that answers after a fixed delay; calls go through LiteLLM as in
a run. The critical path is ceil(examples / at once) delays: what is above it is ours.
"""

import asyncio
import math
from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.benchmark import Benchmark, Row
from benchmarks.slow_model import slow_model
from benchmarks.timing import compared, interleaved, seconds, timed
from stash_mcp.models import Example, Message
from stash_mcp.optimization.adapter import SkillAdapter
from stash_mcp.optimization.identity import Identity
from stash_mcp.optimization.llm import ChatModel


@dataclass(frozen=True)
class Size:
    examples: int
    at_once: int
    delay: float
    repetitions: int


class _FlatScorer:
    def score(self, texts: Sequence[str]) -> list[float]:
        return [0.5] * len(texts)


def run(size: Size) -> list[Row]:
    with slow_model(size.delay) as base_url, asyncio.Runner() as runner:
        together = _adapter(base_url, runner, size.at_once)
        in_turn = _adapter(base_url, runner, 1)
        # Before it counts: LiteLLM imports at its first call, and connections are made.
        together.trials(_examples(size.at_once), "warm up")
        pairs = interleaved(
            lambda: timed(lambda: together.trials(_examples(size.examples), "body")),
            lambda: timed(lambda: in_turn.trials(_examples(size.examples), "body")),
            size.repetitions,
        )
    path = math.ceil(size.examples / size.at_once) * size.delay
    what = f"{size.examples} replies of {seconds(size.delay)}, {size.at_once} at once"
    return [
        compared(
            f"{what}; reference: the critical path", [(ours, path) for ours, _ in pairs], seconds
        ),
        compared(f"{what}; reference: one after another", pairs, seconds),
    ]


_MOST_EXAMPLES = 100


def _adapter(base_url: str, runner: asyncio.Runner, at_once: int) -> SkillAdapter:
    task = ChatModel("openai/slow", base_url, max_concurrency=at_once)
    identity = Identity("polite-support", "Answers customers.")
    return SkillAdapter(identity, task, _FlatScorer(), runner, _examples(_MOST_EXAMPLES))


def _examples(count: int) -> list[Example]:
    return [
        Example(
            trace_id=f"t{number}",
            system="You help the customers of a shop.",
            messages=(Message(role="user", content=f"Where is my order {number}?"),),
            feedback=(),
        )
        for number in range(count)
    ]


BENCHMARK = Benchmark(
    run,
    smallest=Size(4, 2, 0.01, 1),
    quick=Size(24, 8, 0.3, 1),
    full=Size(24, 8, 0.3, 3),
)
