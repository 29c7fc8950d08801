"""GEPA's adapter: a batch of examples and a body in, replies and scores out.

Failure policy, by the pipeline's contract: a request that the task model rejects, or answers with
nothing, scores 0 and carries its error to reflection; every other error of a model ends the run.
All requests of a batch go out at once, up to the model's own limit.
"""

import asyncio
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from gepa import EvaluationBatch

from stash_mcp.datasets.examples import asked_alike
from stash_mcp.errors import EmptyReplyError, RequestRejectedError, RunError, StashSkillsError
from stash_mcp.models import INPUT_VERSION_1, Example, InputFormat, Message, Skill
from stash_mcp.optimization.identity import Identity
from stash_mcp.optimization.model import Model
from stash_mcp.optimization.reflection import ReflectionRecord
from stash_mcp.rendering import render_for, render_messages
from stash_mcp.skills.document import system_message

COMPONENT = "skill_body"


class Scorer(Protocol):
    def score(self, texts: Sequence[str]) -> list[float]:
        """How well each rendered conversation ends, 0 to 1, in order."""


@dataclass(frozen=True)
class Trial:
    """One example answered with one body. `score` is 0 to 1; `error` says why there is no reply."""

    example: Example
    reply: str
    score: float
    error: str | None = None


class SkillAdapter:
    # GEPA looks for this attribute and loses every proposal in silence where it is missing.
    propose_new_texts = None

    def __init__(
        self,
        identity: Identity,
        task: Model,
        scorer: Scorer,
        runner: asyncio.Runner,
        examples: Sequence[Example],
        before_batch: Callable[[], None] = lambda: None,
        on_reply: Callable[[int, int], None] = lambda done, total: None,
        on_rejected: Callable[[int, int, str], None] = lambda count, total, words: None,
        input_format: InputFormat = INPUT_VERSION_1,
    ) -> None:
        """examples: all that will be asked. input_format: of the reward model's texts.
        before_batch may raise to keep a batch from being sent. on_reply is called with (answered
        so far, in all) as a batch goes on, on_rejected with (rejected, in all, the first one's
        words) after a batch that had any."""
        self.failures: dict[str, int] = {}
        """Most requests rejected in one batch that was answered with each body."""
        self._repetitions = _repetitions(examples)
        self._identity = identity
        self._task = task
        self._scorer = scorer
        self._runner = runner
        self._before_batch = before_batch
        self._on_reply = on_reply
        self._on_rejected = on_rejected
        self._input_format = input_format

    def trials(self, batch: Sequence[Example], body: str) -> list[Trial]:
        """Each example answered and scored, in order."""
        return self._trials([(example, body) for example in batch])

    def _trials(self, asked: Sequence[tuple[Example, str]]) -> list[Trial]:
        self._before_batch()
        answered = self._runner.run(self._answer_all(asked))
        errors = [trial.error for trial in answered if trial.error is not None]
        if errors:
            self._on_rejected(len(errors), len(answered), errors[0])
        texts = [
            render_for(self._input_format, trial.example, trial.reply)
            for trial in answered
            if trial.error is None
        ]
        scores = iter(_checked(self._scorer.score(texts), len(texts)))
        return [
            trial if trial.error is not None else Trial(trial.example, trial.reply, next(scores))
            for trial in answered
        ]

    # --- what GEPA calls ---

    def evaluate(
        self, batch: list[Example], candidate: dict[str, str], capture_traces: bool = False
    ) -> EvaluationBatch[Trial, str]:
        return self.batch_evaluate([(candidate, batch)])[0]

    def batch_evaluate(
        self, items: list[tuple[dict[str, str], list[Example]]]
    ) -> list[EvaluationBatch[Trial, str]]:
        """Several bodies, each on examples of its own, all requests at once."""
        asked = [(example, body[COMPONENT]) for body, batch in items for example in batch]
        trials = iter(self._trials(asked))
        return [
            self._evaluation(body[COMPONENT], [next(trials) for _ in batch])
            for body, batch in items
        ]

    def _evaluation(self, body: str, trials: list[Trial]) -> EvaluationBatch[Trial, str]:
        failed = [trial for trial in trials if trial.error is not None]
        if not self.failures and len(failed) == len(trials):
            # The first batch is the seed on every example: nothing can be measured here.
            raise RunError(
                f"The task model gave no usable reply to any of the {len(trials)} requests. The "
                f"first: {failed[0].error}",
                "Mend what those words say, or take another task model.",
            )
        self.failures[body] = max(len(failed), self.failures.get(body, 0))
        return EvaluationBatch(
            outputs=[trial.reply for trial in trials],
            scores=[trial.score for trial in trials],
            trajectories=trials,
        )

    def make_reflective_dataset(
        self,
        candidate: dict[str, str],
        eval_batch: EvaluationBatch[Trial, str],
        components_to_update: list[str],
    ) -> Mapping[str, Sequence[Mapping[str, Any]]]:
        # GEPA copies each record into a dict; ours comes back out of it in the proposer.
        records = [{"record": _record(trial)} for trial in eval_batch.trajectories or ()]
        return dict.fromkeys(components_to_update, records)

    async def _answer_all(self, asked: Sequence[tuple[Example, str]]) -> list[Trial]:
        done = 0

        async def answer(example: Example, body: str) -> Trial:
            nonlocal done
            trial = await self._answer(example, self._skill(body))
            done += 1
            self._on_reply(done, len(asked))
            return trial

        first: StashSkillsError | None = None
        try:
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(answer(example, body)) for example, body in asked]
        except* StashSkillsError as failed:
            # The first one names the cause; the others are its companions or were called off.
            first = _first(failed)
        if first is not None:
            # Not within `except*`, which may put what is raised in it into a group again.
            raise first
        return [task.result() for task in tasks]

    def _skill(self, body: str) -> Skill:
        identity = self._identity
        return Skill(name=identity.name, description=identity.description, body=body)

    async def _answer(self, example: Example, skill: Skill) -> Trial:
        system = Message(role="system", content=system_message(example.system, skill))
        try:
            repetition = self._repetitions.get(example.trace_id, 0)
            answer = await self._task.ask([system, *example.messages], repetition=repetition)
        except (RequestRejectedError, EmptyReplyError) as error:
            return Trial(example, "", 0.0, str(error))
        return Trial(example, answer.text, 0.0)


def _first(group: BaseExceptionGroup[StashSkillsError]) -> StashSkillsError:
    error = group.exceptions[0]
    return _first(error) if isinstance(error, BaseExceptionGroup) else error


def _repetitions(examples: Sequence[Example]) -> dict[str, int]:
    """By trace id, how many earlier examples ask the very same: each is a sample of its own."""
    seen: Counter[object] = Counter()
    repetitions = {}
    for example in examples:
        repetitions[example.trace_id] = seen[asked_alike(example)]
        seen[asked_alike(example)] += 1
    return repetitions


def _record(trial: Trial) -> ReflectionRecord:
    return ReflectionRecord(
        conversation=render_messages(trial.example.messages),
        reply=trial.reply,
        score=trial.score,
        error=trial.error,
        comments=trial.example.feedback,
    )


def _checked(scores: list[float], expected: int) -> list[float]:
    """GEPA asserts on a score that is no number, and runs past a list that is too short."""
    usable = len(scores) == expected and all(math.isfinite(score) for score in scores)
    if not usable:
        raise RunError(
            f"The reward model gave {len(scores)} scores for {expected} replies, or one that is "
            "not a finite number.",
            "Train the reward model again.",
        )
    return scores
