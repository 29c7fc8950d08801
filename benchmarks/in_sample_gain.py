"""Whether the verdict on a run is honest where nothing can be gained.

Every body is equally good: the score of a reply is 0.5 plus noise of sd 0.15, drawn anew for each.
Whole runs go through the product's own code and GEPA's search, with models that cost nothing. What
a run reports on its own examples is luck; the gain on held-out ones should be about 0, and
`Improved`, which is said where the 95 % interval of the gain is above 0, in at most 2.5 % of runs.
The held-out gain is a mean over the runs that measure it: those whose best is not the seed.

The product holds nothing out below 20 conversations and then says `Unproven`. Here 5 are held out
beside 10, as 5 are beside the 15 of its smallest case, to see what the measure would say. A budget
of 40 on 24 examples is left out: it is refused, as it reaches no two proposals.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, stdev

from benchmarks.benchmark import Benchmark, Row
from stash_mcp.models import Candidate, Example, Message, RunRequest, RunResult
from stash_mcp.optimization.comments import CommentIdentifier
from stash_mcp.optimization.identity import Identity
from stash_mcp.optimization.limits import Limits
from stash_mcp.optimization.llm import ChatModel
from stash_mcp.optimization.memory import Answer, Tool
from stash_mcp.optimization.optimize import Parts, run_optimization
from stash_mcp.optimization.reflection import ReflectionRecord
from stash_mcp.runs.plan import default_budget

SPREAD = 0.15
_MINIBATCH = 3


@dataclass(frozen=True)
class Size:
    seeds: int


@dataclass(frozen=True)
class _Setting:
    """budget None: the product's default."""

    examples: int
    heldout: int
    budget: int | None

    @property
    def metric_calls(self) -> int:
        return self.budget or default_budget(self.examples, _MINIBATCH)

    @property
    def name(self) -> str:
        kind = "budget" if self.budget else "default budget"
        return f"N={self.examples}, {kind} {self.metric_calls}"


SETTINGS = (
    _Setting(examples=10, heldout=5, budget=40),
    _Setting(examples=10, heldout=5, budget=150),
    _Setting(examples=10, heldout=5, budget=None),
    _Setting(examples=24, heldout=8, budget=150),
    _Setting(examples=24, heldout=8, budget=None),
)


def run(size: Size) -> list[Row]:
    return [
        row
        for setting in SETTINGS
        for row in _rows(setting, [_result(setting, seed) for seed in range(size.seeds)])
    ]


def _rows(setting: _Setting, results: Sequence[RunResult]) -> list[Row]:
    runs = len(results)
    reported = fmean(result.best_score - result.seed_score for result in results)
    gains = [result.heldout.gain for result in results if result.heldout is not None]
    improved = sum(result.verdict.startswith("Improved") for result in results) / runs
    not_seed = sum(result.best_candidate != 0 for result in results) / runs
    return [
        Row(
            f"{setting.name}: gain held-out (truly 0); reference: in-sample",
            _gain(gains),
            f"{reported:+.3f}",
            fmean(gains) / reported if gains and reported else None,
            runs,
        ),
        Row(
            f"{setting.name}: called Improved; reference: best is not the seed",
            f"{improved:.1%}",
            f"{not_seed:.1%}",
            improved / not_seed if not_seed else None,
            runs,
        ),
    ]


def _gain(gains: Sequence[float]) -> str:
    """The mean and its standard error."""
    if len(gains) < 2:
        return "too few runs"
    return f"{fmean(gains):+.3f} ± {stdev(gains) / len(gains) ** 0.5:.3f}"


def _result(setting: _Setting, seed: int) -> RunResult:
    request = RunRequest(
        reward_model_id="none",
        task_model="openai/none",
        reflection_model="none",
        max_metric_calls=setting.metric_calls,
        skill_name="polite-support",
        skill_description="Answers customers.",
        random_seed=seed,
        minibatch_size=_MINIBATCH,
        heldout=setting.heldout,
    )
    parts = Parts(
        task=_Echo(),
        scorer=_Noise(seed),
        identifier=CommentIdentifier(),
        reflector=lambda identity: _Numbered(),
        limits=Limits(request),
    )
    return run_optimization(request, _examples(setting), parts, _Nobody())


def _examples(setting: _Setting) -> list[Example]:
    return [
        Example(
            trace_id=f"t{number:02}",
            system=None,
            messages=(Message(role="user", content=f"Where is it, {number}?"),),
            feedback=(),
        )
        for number in range(setting.examples + setting.heldout)
    ]


class _Echo(ChatModel):
    """A task model that answers at once, always the same."""

    def __init__(self) -> None:
        pass

    async def ask(
        self, messages: Sequence[Message], tool: Tool | None = None, repetition: int = 0
    ) -> Answer:
        return Answer("Here.", "stop")


class _Noise:
    """A reward model that knows nothing."""

    def __init__(self, seed: int) -> None:
        # Not the stream that the search draws its minibatches from.
        self._random = random.Random(f"noise {seed}")

    def score(self, texts: Sequence[str]) -> list[float]:
        return [min(1.0, max(0.0, self._random.gauss(0.5, SPREAD))) for _ in texts]


class _Numbered:
    """Proposes bodies that differ in nothing but a number."""

    def __init__(self) -> None:
        self.calls = 0

    async def propose(self, body: str, records: Sequence[ReflectionRecord]) -> str:
        self.calls += 1
        return f"Body {self.calls}."


class _Nobody:
    """A monitor that nobody looks at."""

    def phase(self, name: str, metric_calls: bool = False) -> None: ...

    def replied(self, done: int, total: int) -> None: ...

    def identified(self, identity: Identity) -> None: ...

    def proposed(self, number: int) -> None: ...

    def refused(self, reason: str) -> None: ...

    def turned_down(self, before: float, after: float) -> None: ...

    def rejected(self, count: int, total: int, words: str) -> None: ...

    def scored(self, candidate: Candidate) -> None: ...

    def log(self, message: str) -> None: ...


BENCHMARK = Benchmark(run, smallest=Size(2), quick=Size(20), full=Size(400))
