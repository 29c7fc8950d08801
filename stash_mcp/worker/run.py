"""A run: its folder in, candidates and progress on the way, a result out."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from stash_mcp.checkpoints import read_input_format, verify_checkpoint
from stash_mcp.errors import RunError
from stash_mcp.models import (
    AGENT_REFLECTION,
    BUILTIN_REFLECTION,
    Candidate,
    InputFormat,
    Job,
    RunRequest,
    RunResult,
    TrainMetrics,
    Usage,
)
from stash_mcp.optimization.agent import AgentIdentifier, AgentReflector
from stash_mcp.optimization.comments import CommentIdentifier, CommentReflector
from stash_mcp.optimization.identity import Identifier, Identity, ModelIdentifier
from stash_mcp.optimization.limits import Limits
from stash_mcp.optimization.measure import caution
from stash_mcp.optimization.memory import Memory
from stash_mcp.optimization.model import Model
from stash_mcp.optimization.opening import open_model
from stash_mcp.optimization.optimize import Parts, run_optimization
from stash_mcp.optimization.reflection import ModelReflector, Reflector
from stash_mcp.optimization.remeasure import remeasure
from stash_mcp.reward.score import RewardScorer
from stash_mcp.runs.folder import JobFolder
from stash_mcp.runs.reflections import ReflectionStore
from stash_mcp.runs.store import JobStore
from stash_mcp.settings import Settings, secret_values
from stash_mcp.storage.calls import CallStore
from stash_mcp.storage.database import Database
from stash_mcp.worker.desk import AgentDesk
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
    said = [event.message for event in store.events(job.id)]
    tracker = Tracker(store, job.id, monotonic, job.progress, said)
    tracker.update(
        at_once=True, phase="loading the reward model", max_metric_calls=request.max_metric_calls
    )
    calls = CallStore(settings.calls_path, lambda: datetime.now(UTC))
    only_for = job.id if request.fresh else None
    desk = None
    if request.reflection_model == AGENT_REFLECTION:
        desk = _desk(job, request, settings, store, tracker, monotonic)
    models = _Models(request, Memory(calls, only_for, f"{job.id}/{job.go}"), job, desk)
    scorer = RememberingScorer(RewardScorer(checkpoint), calls, digest, only_for)
    parts = models.parts(
        scorer,
        tracker,
        caution(_metrics(store, request.reward_model_id)),
        read_input_format(checkpoint),
    )
    monitor = RunMonitor(job.id, store, tracker, monotonic, models)
    # A run that is carried on takes the same path again, with the answers that it has already:
    # its candidates are stored again under their numbers, and at the end no others stay.
    try:
        if request.measured is not None:
            result = remeasure(request.measured, folder.examples(), parts, monitor)
        else:
            result = run_optimization(request, folder.examples(), parts, monitor)
    finally:
        # Also of a run that fails: what it spent is spent.
        tracker.update(at_once=True, **models.usage())
    store.keep_candidates(job.id, len(result.candidates))
    monitor.finished()
    return result


def _desk(
    job: Job,
    request: RunRequest,
    settings: Settings,
    store: JobStore,
    tracker: Tracker,
    monotonic: Callable[[], float],
) -> AgentDesk:
    reflections = ReflectionStore(Database(settings.library_path), lambda: datetime.now(UTC))
    return AgentDesk(reflections, job.id, tracker, store.has_queued, monotonic, fresh=request.fresh)


def _metrics(store: JobStore, reward_model_id: str) -> TrainMetrics | None:
    metrics = (store.get(reward_model_id).result or {}).get("metrics")
    return None if metrics is None else TrainMetrics.model_validate(metrics)


class _Models:
    """The task model and, unless reflection is built in, the reflection model or the agent."""

    def __init__(
        self, request: RunRequest, memory: Memory, job: Job, desk: AgentDesk | None
    ) -> None:
        secrets = secret_values()
        self._request = request
        self._desk = desk
        self.task = open_model(
            request.task_model,
            request.task_api_base,
            max_concurrency=request.max_concurrency,
            secrets=secrets,
            memory=memory,
            usage=_spent_before(job.progress.task_usage),
        )
        self.reflection: Model | None = None
        if request.reflection_model not in (BUILTIN_REFLECTION, AGENT_REFLECTION):
            self.reflection = open_model(
                request.reflection_model,
                request.reflection_api_base,
                secrets=secrets,
                memory=memory,
                usage=_spent_before(job.progress.reflection_usage),
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

    def parts(
        self, scorer: RememberingScorer, tracker: Tracker, caution: str, form: InputFormat
    ) -> Parts:
        desk = self._desk
        limits = Limits(
            self._request,
            self._spent,
            tracker.active_seconds,
            lambda: desk is not None and desk.is_replaying,
        )
        identifier, reflector = self._writers()
        return Parts(self.task, scorer, identifier, reflector, limits, caution, form)

    def _writers(self) -> tuple[Identifier, Callable[[Identity], Reflector]]:
        """Who names the skill, and who writes its body."""
        desk, model, request = self._desk, self.reflection, self._request
        if desk is not None:
            identifier = AgentIdentifier(desk, request.skill_name, request.skill_description)
            return identifier, lambda identity: AgentReflector(desk, identity)
        if model is not None:
            return ModelIdentifier(model), lambda identity: ModelReflector(model, identity)
        return CommentIdentifier(), lambda identity: CommentReflector(request.random_seed)

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
        if self._desk is not None:
            usage["reflection_usage"] = self._desk.usage
        return usage

    @property
    def are_predictable(self) -> bool:
        """Whether the pace so far says when the run will end; an agent answers when it will."""
        return self._desk is None


def _spent_before(usage: Usage) -> Usage:
    """Of earlier attempts, whose answers this one remembers from the first on."""
    return usage.model_copy(update={"remembered": 0})


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
            f"{name} scored {candidate.score:.3f} in-sample, on {len(candidate.scores)} "
            f"conversations; best so far {best:.3f}."
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
        if not used or not self._counting or not self._models.are_predictable:
            return None
        pace = (self._monotonic() - self._started) / used
        return pace * max(0, self._tracker.progress.max_metric_calls - used)
