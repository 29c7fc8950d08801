"""A whole run: identity, the search, the final measure, the result."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from stash_mcp.datasets.examples import asked_alike
from stash_mcp.models import (
    INPUT_VERSION_1,
    Example,
    Heldout,
    InputFormat,
    RunRequest,
    RunResult,
    ScoredSkill,
    StopReason,
)
from stash_mcp.optimization.adapter import Scorer, SkillAdapter
from stash_mcp.optimization.identity import Identifier, Identity
from stash_mcp.optimization.limits import Limits, SearchStopped
from stash_mcp.optimization.measure import doubted, paired, verdict
from stash_mcp.optimization.model import Model
from stash_mcp.optimization.reflection import Reflector
from stash_mcp.optimization.search import Monitor, Search


@dataclass(frozen=True)
class Parts:
    """What a run works with; `reflector` is made once the identity is known."""

    task: Model
    scorer: Scorer
    identifier: Identifier
    reflector: Callable[[Identity], Reflector]
    limits: Limits
    caution: str = ""
    """What speaks against believing the reward model; said with any gain."""
    input_format: InputFormat = INPUT_VERSION_1
    """Of the reward model's texts."""


def run_optimization(
    request: RunRequest, examples: Sequence[Example], parts: Parts, monitor: Monitor
) -> RunResult:
    """Evolve a body and measure it. The last `request.heldout` examples are kept for the measure.

    Raises ModelError for what a model did, RunError for a run that cannot give a result.
    """
    seen = examples[: len(examples) - request.heldout]
    unseen = examples[len(examples) - request.heldout :]
    with asyncio.Runner() as runner:
        monitor.phase("naming the skill")
        identity = _identity(request, seen, parts.identifier, runner)
        monitor.identified(identity)
        adapter = SkillAdapter(
            identity,
            parts.task,
            parts.scorer,
            runner,
            examples,
            parts.limits.check,
            monitor.replied,
            monitor.rejected,
            parts.input_format,
        )
        reflector = parts.reflector(identity)
        search = Search(request, seen, identity, adapter, reflector, monitor)
        reason = search.run(runner)
        monitor.phase("measuring on held-out conversations")
        heldout, rejected = _measure(adapter, unseen, search)
    result = _result(request, identity, search, adapter, reason, heldout, rejected)
    if result.best_candidate == 0 or not parts.caution:
        return result
    return result.model_copy(update={"verdict": doubted(result.verdict or "", parts.caution)})


def _identity(
    request: RunRequest,
    examples: Sequence[Example],
    identifier: Identifier,
    runner: asyncio.Runner,
) -> Identity:
    if request.skill_name is not None and request.skill_description is not None:
        return Identity(request.skill_name, request.skill_description)
    made = runner.run(identifier.identify(examples))
    return Identity(request.skill_name or made.name, request.skill_description or made.description)


def _measure(
    adapter: SkillAdapter, unseen: Sequence[Example], search: Search
) -> tuple[Heldout | None, int]:
    """With how many of its requests were rejected. None where nothing was held out, the seed is
    the best, or a cap leaves nothing to spend.
    """
    questions = list({asked_alike(example): example for example in unseen}.values())
    # An interval takes two differences at the least.
    if len(questions) < 2 or search.best == 0:
        return None, 0
    try:
        before = adapter.trials(questions, search.bodies[0])
        after = adapter.trials(questions, search.bodies[search.best])
    except SearchStopped:
        return None, 0
    rejected = sum(trial.error is not None for trial in (*before, *after))
    return paired([trial.score for trial in before], [trial.score for trial in after]), rejected


def _result(
    request: RunRequest,
    identity: Identity,
    search: Search,
    adapter: SkillAdapter,
    reason: StopReason,
    heldout: Heldout | None,
    heldout_failed: int,
) -> RunResult:
    failed = adapter.failures.get(search.bodies[search.best], 0)
    seed, best = search.candidates[0], search.candidates[search.best]
    return RunResult(
        skill_name=identity.name,
        skill_description=identity.description,
        best_skill=best.skill,
        best_score=best.score,
        seed_skill=seed.skill,
        seed_score=seed.score,
        candidates=tuple(
            ScoredSkill(skill=candidate.skill, score=candidate.score)
            for candidate in search.candidates
        ),
        best_candidate=best.number,
        heldout=heldout,
        verdict=verdict(
            seed_score=seed.score,
            best_score=best.score,
            examples=len(seed.scores),
            candidates=len(search.candidates),
            heldout=heldout,
            kept_back=request.heldout,
            failed=failed,
            heldout_failed=heldout_failed,
        ),
        stop_reason=reason,
        failed_examples=failed,
    )
