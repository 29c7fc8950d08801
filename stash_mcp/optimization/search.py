"""GEPA's search, with our proposer, stop rule and callbacks.

What GEPA is not trusted with, and why: errors of reflection (it swallows them, so the first one is
latched here, stops the search and is raised after it), its own logging (standard output), its
evaluation cache (it mixes up training and validation scores), its extraction (it mangles
Markdown), and resuming from its pickled state.
"""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import gepa
from gepa.core.state import GEPAState
from gepa.strategies.proposal_sampling import IndependentSampling

from stash_mcp.errors import ModelAnswerError, RunError
from stash_mcp.models import Candidate, Example, RunRequest, Skill, StopReason
from stash_mcp.optimization.adapter import COMPONENT, SkillAdapter
from stash_mcp.optimization.identity import Identity
from stash_mcp.optimization.limits import PERFECT, SearchStopped
from stash_mcp.optimization.reflection import ReflectionRecord, Reflector
from stash_mcp.runs.plan import next_proposal_fits
from stash_mcp.skills.document import render
from stash_mcp.skills.proposal import Refusal

MAX_REFUSALS_IN_A_ROW = 3

_Asked = tuple[str, list[ReflectionRecord]]
"""The body of a parent and what its minibatch showed."""


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

    def rejected(self, count: int, total: int, words: str) -> None:
        """The task model rejected `count` of a batch's `total` requests; `words` of the first."""

    def log(self, message: str) -> None: ...


class Search:
    """One search; `run` it once. `bodies` and `candidates` grow together, the seed first."""

    def __init__(
        self,
        request: RunRequest,
        examples: Sequence[Example],
        identity: Identity,
        adapter: SkillAdapter,
        reflector: Reflector,
        monitor: Monitor,
    ) -> None:
        self.bodies: list[str] = []
        self.candidates: list[Candidate] = []
        self._request = request
        self._examples = list(examples)
        self._identity = identity
        self._adapter = adapter
        self._reflector = reflector
        self._monitor = monitor
        self._minibatch = min(request.minibatch_size, len(examples))
        self._latched: BaseException | None = None
        self._usable = 0
        self._refusals: list[str] = []
        self._asked: list[_Asked] = []
        self._answers: list[str | Refusal] = []
        self._tries_since_best = 0
        self._reason: StopReason = "budget"

    @property
    def best(self) -> int:
        """Number of the best candidate; of equal ones the first."""
        scores = [candidate.score for candidate in self.candidates]
        return scores.index(max(scores))

    def run(self, runner: asyncio.Runner) -> StopReason:
        """Search until a limit is reached. Raises ModelError or RunError without a result."""
        self._monitor.phase("scoring the seed", metric_calls=True)
        try:
            self._optimize(runner)
        except SearchStopped as stopped:
            self._reason = stopped.reason
        if self._latched is not None:
            raise self._latched
        if not self.candidates:
            raise RunError(
                f"The run's limit ({self._reason}) was reached before the seed was scored.",
                "Start the run again with a higher limit.",
            )
        if self._reflector.calls == 0 and self._reason in ("budget", "perfect"):
            raise RunError(
                "The reflection model was never called: the budget of "
                f"{self._request.max_metric_calls} metric calls was too small, or every reply "
                "scored perfectly already.",
                "Start the run again with a larger max_metric_calls.",
            )
        return self._reason

    def _optimize(self, runner: asyncio.Runner) -> None:
        self._runner = runner
        gepa.optimize(
            seed_candidate={COMPONENT: self._seed_body()},
            trainset=self._examples,
            valset=self._examples,
            adapter=self._adapter,
            custom_candidate_proposer=self._propose,
            reflection_minibatch_size=self._minibatch,
            stop_callbacks=self._stop,
            callbacks=[_Callbacks(self._on_scored, self._on_asked, self._monitor)],
            sampling_strategy=IndependentSampling(self._request.proposals_at_once),
            logger=_Logger(self._monitor),
            seed=self._request.random_seed,
            track_best_outputs=False,
            raise_on_exception=True,
        )

    def _seed_body(self) -> str:
        adopted = self._request.adopted
        return self._identity.description if adopted is None else adopted.body

    def _stop(self, state: "GEPAState[str, int]") -> bool:
        if self._latched is not None:
            return True
        patience = self._request.no_improvement_for
        if patience is not None and self._tries_since_best >= patience:
            self._reason = "no_improvement_for"
            return True
        if self.candidates[self.best].score >= PERFECT:
            self._reason = "perfect"
            return True
        return not next_proposal_fits(
            state.total_num_evals,
            self._request.max_metric_calls,
            len(self._examples),
            self._minibatch,
            self._request.proposals_at_once,
        )

    def _on_asked(self, body: str, dataset: Mapping[str, Sequence[Mapping[str, Any]]]) -> None:
        self._asked.append((body, _records(dataset)))

    def _propose(
        self,
        candidate: dict[str, str],
        reflective_dataset: Mapping[str, Sequence[Mapping[str, Any]]],
        components_to_update: list[str],
    ) -> dict[str, str]:
        """GEPA swallows what is raised here and calls again: hence the latch."""
        if self._latched is None and not self._answers:
            asked, self._asked = self._asked, []
            self._answers = self._runner.run(self._reflect(asked))
        if self._latched is not None:
            return {}
        self._tries_since_best += 1
        body = self._answers.pop(0)
        if isinstance(body, Refusal):
            self._note(body)
            return {}
        self._usable += 1
        self._refusals.clear()
        self._monitor.proposed(self._usable)
        return {COMPONENT: body}

    async def _reflect(self, asked: Sequence[_Asked]) -> list[str | Refusal]:
        """All proposals of a round at once; GEPA asks for them one by one. A failure is latched."""
        proposals = (self._reflector.propose(body, records) for body, records in asked)
        outcomes = await asyncio.gather(*proposals, return_exceptions=True)
        answers: list[str | Refusal] = []
        for outcome in outcomes:
            if isinstance(outcome, BaseException):
                self._latched = self._latched or outcome
            else:
                answers.append(outcome)
        return answers

    def _note(self, refusal: Refusal) -> None:
        self._monitor.refused(refusal.reason)
        if refusal.nothing_to_say:
            return
        self._refusals.append(refusal.reason)
        if self._usable == 0 and len(self._refusals) == MAX_REFUSALS_IN_A_ROW:
            self._latched = ModelAnswerError(
                f"The reflection model gave no usable body in {MAX_REFUSALS_IN_A_ROW} proposals; "
                f"the last one: {refusal.reason}",
                "Take another reflection model; builtin/comments needs none.",
            )

    def _on_scored(self, body: str, event: Mapping[str, Any]) -> None:
        best = max((known.score for known in self.candidates), default=-1.0)
        scores = event["scores_by_val_id"]
        candidate = Candidate(
            number=event["candidate_idx"],
            skill=self.skill(body),
            score=event["average_score"],
            parents=tuple(event["parent_ids"]),
            scores={self._examples[place].trace_id: score for place, score in scores.items()},
        )
        self.bodies.append(body)
        self.candidates.append(candidate)
        if candidate.score > best:
            self._tries_since_best = 0
        self._monitor.scored(candidate)

    def skill(self, body: str) -> str:
        """The whole SKILL.md with this body."""
        identity = self._identity
        return render(Skill(name=identity.name, description=identity.description, body=body))


class _Callbacks:
    """GEPA's events as ours. It ignores what a callback raises, so these only pass things on."""

    def __init__(self, on_scored: Any, on_asked: Any, monitor: Monitor) -> None:
        self._on_scored = on_scored
        self._on_asked = on_asked
        self._monitor = monitor

    def on_valset_evaluated(self, event: Mapping[str, Any]) -> None:
        self._on_scored(event["candidate"][COMPONENT], event)
        if event["candidate_idx"] == 0:
            self._monitor.phase("optimising", metric_calls=True)

    def on_proposal_start(self, event: Mapping[str, Any]) -> None:
        self._on_asked(event["parent_candidate"][COMPONENT], event["reflective_dataset"])

    def on_candidate_rejected(self, event: Mapping[str, Any]) -> None:
        self._monitor.turned_down(event["old_score"], event["new_score"])


def _records(dataset: Mapping[str, Sequence[Mapping[str, Any]]]) -> list[ReflectionRecord]:
    return [row["record"] for row in dataset[COMPONENT]]


class _Logger:
    def __init__(self, monitor: Monitor) -> None:
        self._monitor = monitor

    def log(self, message: str) -> None:
        self._monitor.log(message)
