"""A run: its folder in, candidates and progress on the way, a result out."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from stash_mcp.checkpoints import verify_checkpoint
from stash_mcp.errors import RunError
from stash_mcp.models import (
    BUILTIN_REFLECTION,
    Candidate,
    Job,
    RunRequest,
    RunResult,
    TrainMetrics,
)
from stash_mcp.optimization.comments import CommentIdentifier, CommentReflector
from stash_mcp.optimization.identity import Identity, ModelIdentifier
from stash_mcp.optimization.limits import Limits
from stash_mcp.optimization.llm import ChatModel
from stash_mcp.optimization.measure import caution
from stash_mcp.optimization.memory import Memory
from stash_mcp.optimization.optimize import Parts, run_optimization
from stash_mcp.optimization.reflection import ModelReflector
from stash_mcp.reward.score import RewardScorer
from stash_mcp.runs.folder import JobFolder
from stash_mcp.runs.store import JobStore
from stash_mcp.settings import Settings, secret_values
from stash_mcp.storage.calls import CallStore
from stash_mcp.worker.fingerprint import check_fingerprint, checkpoint_digest
from stash_mcp.worker.logs import LOG
from stash_mcp.worker.scoring import RememberingScorer
from stash_mcp.worker.tracker import Tracker


def do_run(
    job: Job, settings: Settings, store: JobStore, monotonic: Callable[[], float]
) -> RunResult:
    request = RunRequest.model_validate(job.request)
    folder = JobFolder(settings.runs_dir / job.id)
    checkpoint = JobFolder(settings.reward_models_dir / request.reward_model_id).model_path
    verify_checkpoint(checkpoint)
    digest = checkpoint_digest(checkpoint)
    check_fingerprint(folder, request, digest)
    tracker = Tracker(store, job.id, monotonic, job.progress)
    tracker.update(
        at_once=True, phase="loading the reward model", max_metric_calls=request.max_metric_calls
    )
    calls = CallStore(settings.calls_path, lambda: datetime.now(UTC))
    only_for = job.id if request.fresh else None
    models = _Models(request, Memory(calls, only_for, f"{job.id}/{job.go}"), job)
    scorer = RememberingScorer(RewardScorer(checkpoint), calls, digest, only_for)
    parts = models.parts(scorer, tracker, caution(_metrics(store, request.reward_model_id)))
    monitor = RunMonitor(job.id, store, tracker, monotonic, models)
    # A run that is carried on takes the same path again, with the answers that it has already:
    # its candidates are stored again under their numbers, and at the end no others stay.
    try:
        result = run_optimization(request, folder.examples(), parts, monitor)
    finally:
        # Also of a run that fails: what it spent is spent.
        tracker.update(at_once=True, **models.usage())
    store.keep_candidates(job.id, len(result.candidates))
    monitor.finished()
    return result


def _metrics(store: JobStore, reward_model_id: str) -> TrainMetrics | None:
    metrics = (store.get(reward_model_id).result or {}).get("metrics")
    return None if metrics is None else TrainMetrics.model_validate(metrics)


class _Models:
    """The task model and, unless reflection is built in, the reflection model."""

    def __init__(self, request: RunRequest, memory: Memory, job: Job) -> None:
        secrets = secret_values()
        self._request = request
        self.task = ChatModel(
            request.task_model,
            request.task_api_base,
            max_concurrency=request.max_concurrency,
            secrets=secrets,
            memory=memory,
            usage=job.progress.task_usage,
        )
        self.reflection: ChatModel | None = None
        if request.reflection_model != BUILTIN_REFLECTION:
            self.reflection = ChatModel(
                request.reflection_model,
                request.reflection_api_base,
                secrets=secrets,
                memory=memory,
                usage=job.progress.reflection_usage,
            )
        if request.max_cost_usd is not None:
            self._refuse_unpriced()

    def _refuse_unpriced(self) -> None:
        for model in (self.task, self.reflection):
            if model is not None and not model.is_priced:
                raise RunError(
                    f"max_cost_usd cannot be kept: the price of '{model.model}' is not known.",
                    "Leave max_cost_usd out and bound the run with max_metric_calls or "
                    "max_seconds.",
                )

    def parts(self, scorer: RememberingScorer, tracker: Tracker, caution: str) -> Parts:
        limits = Limits(self._request, self._spent, tracker.active_seconds)
        reflection, seed = self.reflection, self._request.seed
        if reflection is None:
            return Parts(
                self.task,
                scorer,
                CommentIdentifier(),
                lambda identity: CommentReflector(seed),
                limits,
                caution,
            )
        return Parts(
            self.task,
            scorer,
            ModelIdentifier(reflection),
            lambda identity: ModelReflector(reflection, identity),
            limits,
            caution,
        )

    def _spent(self) -> float | None:
        costs = [
            model.usage.cost_usd for model in (self.task, self.reflection) if model is not None
        ]
        return sum(cost or 0.0 for cost in costs)

    def usage(self) -> dict[str, Any]:
        """The fields of the progress that say what was spent."""
        usage: dict[str, Any] = {"task_usage": self.task.usage}
        if self.reflection is not None:
            usage["reflection_usage"] = self.reflection.usage
        return usage


class RunMonitor:
    """The run's events as progress, candidates and history in the library, and lines of its log."""

    def __init__(
        self,
        job_id: str,
        store: JobStore,
        tracker: Tracker,
        monotonic: Callable[[], float],
        models: _Models,
    ) -> None:
        self._job_id = job_id
        self._store = store
        self._tracker = tracker
        self._monotonic = monotonic
        self._models = models
        self._started = monotonic()
        self._counting = False
        self._told_of_rejections = False

    def phase(self, name: str, metric_calls: bool = False) -> None:
        if metric_calls and not self._counting:
            self._started = self._monotonic()
        self._counting = metric_calls
        self._tracker.update(at_once=True, phase=name, done=0, total=0)
        LOG.info("%s", name)

    def replied(self, done: int, total: int) -> None:
        used = self._tracker.progress.metric_calls + self._counting
        self._tracker.update(
            at_once=done == total,
            done=done,
            total=total,
            metric_calls=used,
            estimate_seconds=self._estimate(used),
            **self._models.usage(),
        )

    def identified(self, identity: Identity) -> None:
        LOG.info("skill name: %s; description: %s", identity.name, identity.description)
        self._tracker.event(f"The skill is named {identity.name}.")

    def proposed(self, number: int) -> None:
        self._tracker.update(proposals=number)

    def refused(self, reason: str) -> None:
        count = self._tracker.progress.refused_proposals + 1
        self._tracker.update(refused_proposals=count)
        LOG.info("a proposal was refused: %s", reason)
        self._tracker.event(f"A proposal could not be used: {reason}")

    def turned_down(self, before: float, after: float) -> None:
        number = self._tracker.progress.proposals
        self._tracker.event(
            f"Proposal {number} was not better on its minibatch: its scores add up to "
            f"{after:.3f}, its parent's to {before:.3f}."
        )

    def scored(self, candidate: Candidate) -> None:
        self._store.put_candidate(self._job_id, candidate)
        progress = self._tracker.progress
        best = max(candidate.score, progress.best_score or 0.0)
        seed = candidate.score if candidate.number == 0 else progress.seed_score
        self._tracker.update(
            candidates=candidate.number + 1,
            best_score=best,
            seed_score=seed,
            **self._models.usage(),
        )
        name = "The seed" if candidate.number == 0 else f"Candidate {candidate.number}"
        LOG.info("%s scored %.4f on %d examples", name, candidate.score, len(candidate.scores))
        self._tracker.event(
            f"{name} scored {candidate.score:.3f} on {len(candidate.scores)} conversations; "
            f"best so far {best:.3f}."
        )

    def rejected(self, count: int, total: int, words: str) -> None:
        LOG.warning("%d of %d requests were rejected; the first: %s", count, total, words)
        if not self._told_of_rejections:
            self._told_of_rejections = True
            self._tracker.event(
                f"The task model rejected {count} of {total} requests, which score 0: {words}"
            )

    def log(self, message: str) -> None:
        LOG.info("gepa: %s", message)

    def finished(self) -> None:
        self._tracker.update(
            at_once=True, phase="finished", estimate_seconds=0.0, **self._models.usage()
        )

    def _estimate(self, used: int) -> float | None:
        """Seconds left at the pace so far, if the whole budget is used."""
        if not used or not self._counting:
            return None
        pace = (self._monotonic() - self._started) / used
        return pace * max(0, self._tracker.progress.max_metric_calls - used)
