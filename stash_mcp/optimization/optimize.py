"""A whole run: identity, GEPA's search, the final measure, the result.

What GEPA is not trusted with, and why: errors of reflection (it swallows them, so the first one is
latched here, stops the search and is raised after it), its own logging (standard output), its
evaluation cache (it mixes up training and validation scores), its extraction (it mangles
Markdown), and resuming from its pickled state.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import gepa
from gepa.core.result import GEPAResult
from gepa.core.state import GEPAState

from stash_mcp.errors import ModelAnswerError, ModelError, RunError
from stash_mcp.models import (
    Candidate,
    Example,
    Heldout,
    RunRequest,
    RunResult,
    ScoredSkill,
    Skill,
)
from stash_mcp.optimization.adapter import COMPONENT, Scorer, SkillAdapter
from stash_mcp.optimization.identity import Identifier, Identity
from stash_mcp.optimization.llm import ChatModel
from stash_mcp.optimization.measure import paired, verdict
from stash_mcp.optimization.reflection import ReflectionRecord, Reflector, Refusal
from stash_mcp.runs.plan import next_proposal_fits
from stash_mcp.skills.document import render

MAX_REFUSALS_IN_A_ROW = 3


class Monitor(Protocol):
    """Told what happens as it happens; must not raise and should return at once."""

    def phase(self, name: str, metric_calls: bool = False) -> None:
        """A part of the run begins; whether its replies count against the budget."""

    def replied(self, done: int, total: int) -> None:
        """`done` of the `total` examples of the present batch are answered."""

    def identified(self, identity: Identity) -> None: ...

    def proposed(self, number: int) -> None:
        """Proposal `number`, from 1, is about to be tried on its minibatch."""

    def refused(self, reason: str) -> None:
        """A proposal could not be used."""

    def turned_down(self, before: float, after: float) -> None:
        """A proposal was not better on its minibatch; sums of scores."""

    def scored(self, candidate: Candidate) -> None:
        """A candidate was scored on every example; number 0 is the seed."""

    def log(self, message: str) -> None: ...


@dataclass(frozen=True)
class Parts:
    """What a run works with; `reflector` is made once the identity is known."""

    task: ChatModel
    scorer: Scorer
    identifier: Identifier
    reflector: Callable[[Identity], Reflector]


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
        adapter = SkillAdapter(identity, parts.task, parts.scorer, runner, monitor.replied)
        search = _Search(request, seen, identity, adapter, parts.reflector(identity), monitor)
        found = search.run(runner)
        monitor.phase("measuring on held-out conversations")
        heldout = _measure(adapter, unseen, identity.description, found.best_candidate[COMPONENT])
    return _result(identity, found, adapter, len(seen), heldout)


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


class _Search:
    """GEPA's search, with our proposer, stop rule and callbacks."""

    def __init__(
        self,
        request: RunRequest,
        examples: Sequence[Example],
        identity: Identity,
        adapter: SkillAdapter,
        reflector: Reflector,
        monitor: Monitor,
    ) -> None:
        self._request = request
        self._examples = list(examples)
        self._identity = identity
        self._adapter = adapter
        self._reflector = reflector
        self._monitor = monitor
        self._minibatch = min(request.minibatch_size, len(examples))
        self._latched: ModelError | None = None
        self._usable = 0
        self._refusals: list[str] = []

    def run(self, runner: asyncio.Runner) -> "GEPAResult[str, int]":
        self._monitor.phase("scoring the seed", metric_calls=True)
        self._runner = runner
        found = gepa.optimize(
            seed_candidate={COMPONENT: self._identity.description},
            trainset=self._examples,
            valset=self._examples,
            adapter=self._adapter,
            custom_candidate_proposer=self._propose,
            reflection_minibatch_size=self._minibatch,
            stop_callbacks=self._stop,
            callbacks=[_Callbacks(self._examples, self._identity, self._monitor)],
            logger=_Logger(self._monitor),
            seed=self._request.seed,
            track_best_outputs=False,
            raise_on_exception=True,
        )
        if self._latched is not None:
            raise self._latched
        if self._reflector.calls == 0:
            raise RunError(
                "The reflection model was never called: the budget of "
                f"{self._request.max_metric_calls} metric calls was too small, or every reply "
                "scored perfectly already.",
                "Start the run again with a larger max_metric_calls.",
            )
        return found

    def _stop(self, state: "GEPAState[str, int]") -> bool:
        if self._latched is not None:
            return True
        return not next_proposal_fits(
            state.total_num_evals,
            self._request.max_metric_calls,
            len(self._examples),
            self._minibatch,
        )

    def _propose(
        self,
        candidate: dict[str, str],
        reflective_dataset: Mapping[str, Sequence[Mapping[str, Any]]],
        components_to_update: list[str],
    ) -> dict[str, str]:
        """GEPA swallows what is raised here and calls again: hence the latch."""
        if self._latched is not None:
            return {}
        records: list[ReflectionRecord] = [row["record"] for row in reflective_dataset[COMPONENT]]
        try:
            body = self._runner.run(self._reflector.propose(candidate[COMPONENT], records))
        except ModelError as error:
            self._latched = error
            return {}
        if isinstance(body, Refusal):
            self._note(body)
            return {}
        self._usable += 1
        self._refusals.clear()
        self._monitor.proposed(self._usable)
        return {COMPONENT: body}

    def _note(self, refusal: Refusal) -> None:
        self._refusals.append(refusal.reason)
        self._monitor.refused(refusal.reason)
        if self._usable == 0 and len(self._refusals) == MAX_REFUSALS_IN_A_ROW:
            self._latched = ModelAnswerError(
                f"The reflection model gave no usable body in {MAX_REFUSALS_IN_A_ROW} proposals; "
                f"the last one: {refusal.reason}",
                "Take another reflection model; builtin/comments needs none.",
            )


class _Callbacks:
    """GEPA's events as ours. It ignores what a callback raises, so these only pass things on."""

    def __init__(self, examples: Sequence[Example], identity: Identity, monitor: Monitor) -> None:
        self._examples = examples
        self._identity = identity
        self._monitor = monitor

    def on_valset_evaluated(self, event: Mapping[str, Any]) -> None:
        scores = event["scores_by_val_id"]
        self._monitor.scored(
            Candidate(
                number=event["candidate_idx"],
                skill=_skill(self._identity, event["candidate"]),
                score=event["average_score"],
                parents=tuple(event["parent_ids"]),
                scores={
                    self._examples[position].trace_id: score for position, score in scores.items()
                },
            )
        )
        if event["candidate_idx"] == 0:
            self._monitor.phase("optimising", metric_calls=True)

    def on_candidate_rejected(self, event: Mapping[str, Any]) -> None:
        self._monitor.turned_down(event["old_score"], event["new_score"])


class _Logger:
    def __init__(self, monitor: Monitor) -> None:
        self._monitor = monitor

    def log(self, message: str) -> None:
        self._monitor.log(message)


def _measure(
    adapter: SkillAdapter, unseen: Sequence[Example], seed: str, best: str
) -> Heldout | None:
    if not unseen or best == seed:
        return None
    before = [trial.score for trial in adapter.trials(unseen, seed)]
    after = [trial.score for trial in adapter.trials(unseen, best)]
    return paired(before, after)


def _skill(identity: Identity, candidate: Mapping[str, str]) -> str:
    return render(
        Skill(name=identity.name, description=identity.description, body=candidate[COMPONENT])
    )


def _result(
    identity: Identity,
    found: "GEPAResult[str, int]",
    adapter: SkillAdapter,
    examples: int,
    heldout: Heldout | None,
) -> RunResult:
    skills = [_skill(identity, candidate) for candidate in found.candidates]
    scores = [float(score) for score in found.val_aggregate_scores]
    best = found.best_idx
    return RunResult(
        skill_name=identity.name,
        skill_description=identity.description,
        best_skill=skills[best],
        best_score=scores[best],
        seed_skill=skills[0],
        seed_score=scores[0],
        candidates=tuple(
            ScoredSkill(skill=skill, score=score)
            for skill, score in zip(skills, scores, strict=True)
        ),
        best_candidate=best,
        heldout=heldout,
        verdict=verdict(
            seed_score=scores[0],
            best_score=scores[best],
            examples=examples,
            candidates=len(skills),
            heldout=heldout,
        ),
        failed_examples=adapter.failures.get(found.candidates[best][COMPONENT], 0),
    )
