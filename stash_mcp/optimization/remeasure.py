"""Seed and best of a run that another machine did, measured here with fresh replies.

The search over there saw every conversation that is asked here, so nothing is held out from it:
this tells luck with the replies from a real difference, and not how far the skill carries over.
"""

import asyncio
from collections.abc import Sequence

from stash_mcp.datasets.examples import asked_alike
from stash_mcp.errors import RunError
from stash_mcp.models import (
    Candidate,
    Example,
    Heldout,
    RemoteResult,
    RunResult,
    ScoredSkill,
    Skill,
)
from stash_mcp.optimization.adapter import COMPONENT, SkillAdapter
from stash_mcp.optimization.identity import Identity
from stash_mcp.optimization.limits import SearchStopped
from stash_mcp.optimization.measure import doubted, paired
from stash_mcp.optimization.optimize import Parts
from stash_mcp.optimization.search import Monitor
from stash_mcp.skills.document import render

LEAST = 2
"""Different conversations; an interval takes two differences."""


def remeasure(
    measured: RemoteResult, examples: Sequence[Example], parts: Parts, monitor: Monitor
) -> RunResult:
    """Both bodies on every different conversation, all requests at once.

    Raises ModelError for what a model did, RunError where a cap leaves nothing to spend.
    """
    questions = list({asked_alike(example): example for example in reversed(examples)}.values())
    identity = Identity(measured.best.name, measured.best.description)
    bodies = (measured.seed.body, measured.best.body)
    monitor.identified(identity)
    monitor.phase("measuring the seed and the best", metric_calls=True)
    with asyncio.Runner() as runner:
        adapter = SkillAdapter(
            identity,
            parts.task,
            parts.scorer,
            runner,
            questions,
            parts.limits.check,
            monitor.replied,
            monitor.rejected,
            parts.input_format,
        )
        try:
            found = adapter.batch_evaluate([({COMPONENT: body}, questions) for body in bodies])
        except SearchStopped as stopped:
            raise RunError(
                f"The limit ({stopped.reason}) was reached before anything was measured.",
                "Start it again with a higher limit.",
            ) from None
    scores = [list(evaluation.scores) for evaluation in found]
    for number, skill in enumerate((measured.seed, measured.best)):
        monitor.scored(_candidate(number, skill, questions, scores[number]))
    numbers = paired(*scores)
    rejected = sum(trial.error is not None for e in found for trial in e.trajectories or ())
    return _result(measured, numbers, rejected, parts.caution)


def remeasured_verdict(measured: RemoteResult, numbers: Heldout, rejected: int = 0) -> str:
    """What the numbers say. rejected: requests that the task model refused, of both together."""
    found = (
        f"measured again here with fresh replies, on {numbers.examples} of the conversations that "
        f"Stash's search saw ({measured.trace_ids} in all), it went from "
        f"{numbers.seed_score:.3f} to {numbers.best_score:.3f} ({numbers.gain:+.3f}, 95 % interval "
        f"{numbers.low:+.3f} to {numbers.high:+.3f})"
    )
    stash = f"Stash says, in-sample, {measured.seed_score:.3f} to {measured.best_score:.3f}"
    unseen = "Nothing was held out from that search, so this is in-sample and can still flatter."
    if numbers.high < 0:
        said = f"Worse: {found}. {stash}, which was luck. Do not install it."
    elif numbers.low > 0:
        said = f"Confirmed in-sample: {found}. {stash}. {unseen}"
    else:
        said = f"No reliable improvement: {found}; the interval includes 0. {stash}. {unseen}"
    if rejected:
        said += (
            f" The task model rejected {rejected} of the {2 * numbers.examples} requests, which "
            "count 0."
        )
    return said


def _candidate(
    number: int, skill: Skill, questions: Sequence[Example], scores: Sequence[float]
) -> Candidate:
    by_trace = {q.trace_id: score for q, score in zip(questions, scores, strict=True)}
    return Candidate(
        number=number,
        skill=render(skill),
        score=sum(scores) / len(scores),
        parents=(0,) if number else (),
        scores=by_trace,
    )


def _result(measured: RemoteResult, numbers: Heldout, rejected: int, caution: str) -> RunResult:
    seed = ScoredSkill(skill=render(measured.seed), score=numbers.seed_score)
    best = ScoredSkill(skill=render(measured.best), score=numbers.best_score)
    better = best if best.score > seed.score else seed
    return RunResult(
        skill_name=measured.best.name,
        skill_description=measured.best.description,
        best_skill=better.skill,
        best_score=better.score,
        seed_skill=seed.skill,
        seed_score=seed.score,
        candidates=(seed, best),
        best_candidate=int(better is best),
        remeasured=numbers,
        verdict=doubted(remeasured_verdict(measured, numbers, rejected), caution),
        stop_reason="measured",
        failed_examples=rejected,
    )
