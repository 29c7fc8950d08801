"""A run: its folder in, candidates and progress on the way, a result out."""

from collections.abc import Callable
from typing import Any

from stash_mcp.checkpoints import verify_checkpoint
from stash_mcp.models import (
    BUILTIN_REFLECTION,
    Candidate,
    Job,
    RunRequest,
    RunResult,
)
from stash_mcp.optimization.comments import CommentIdentifier, CommentReflector
from stash_mcp.optimization.identity import Identity, ModelIdentifier
from stash_mcp.optimization.llm import ChatModel
from stash_mcp.optimization.optimize import Parts, run_optimization
from stash_mcp.optimization.reflection import ModelReflector
from stash_mcp.reward.score import RewardScorer
from stash_mcp.runs.folder import JobFolder
from stash_mcp.runs.store import JobStore
from stash_mcp.settings import Settings, secret_values
from stash_mcp.worker.logs import LOG
from stash_mcp.worker.tracker import Tracker


def do_run(
    job: Job, settings: Settings, store: JobStore, monotonic: Callable[[], float]
) -> RunResult:
    request = RunRequest.model_validate(job.request)
    folder = JobFolder(settings.runs_dir / job.id)
    store.clear_candidates(job.id)
    checkpoint = JobFolder(settings.reward_models_dir / request.reward_model_id).model_path
    verify_checkpoint(checkpoint)
    tracker = Tracker(store, job.id, monotonic)
    tracker.update(
        at_once=True, phase="loading the reward model", max_metric_calls=request.max_metric_calls
    )
    secrets = secret_values()
    task = ChatModel(
        request.task_model,
        request.task_api_base,
        max_concurrency=request.max_concurrency,
        secrets=secrets,
    )
    reflection = None
    if request.reflection_model != BUILTIN_REFLECTION:
        reflection = ChatModel(
            request.reflection_model, request.reflection_api_base, secrets=secrets
        )
    parts = _parts(request, task, reflection, RewardScorer(checkpoint))
    monitor = RunMonitor(job.id, store, tracker, monotonic, task, reflection)
    result = run_optimization(request, folder.examples(), parts, monitor)
    monitor.finished()
    return result


def _parts(
    request: RunRequest, task: ChatModel, reflection: ChatModel | None, scorer: RewardScorer
) -> Parts:
    if reflection is None:
        return Parts(
            task, scorer, CommentIdentifier(), lambda identity: CommentReflector(request.seed)
        )
    return Parts(
        task,
        scorer,
        ModelIdentifier(reflection),
        lambda identity: ModelReflector(reflection, identity),
    )


class RunMonitor:
    """The run's events as progress, candidates and history in the library, and lines of its log."""

    def __init__(
        self,
        job_id: str,
        store: JobStore,
        tracker: Tracker,
        monotonic: Callable[[], float],
        task: ChatModel,
        reflection: ChatModel | None,
    ) -> None:
        self._job_id = job_id
        self._store = store
        self._tracker = tracker
        self._monotonic = monotonic
        self._task = task
        self._reflection = reflection
        self._started = monotonic()
        self._counting = False

    def phase(self, name: str, metric_calls: bool = False) -> None:
        if metric_calls and not self._counting:
            self._started = self._monotonic()
        self._counting = metric_calls
        self._tracker.update(at_once=True, phase=name, done=0, total=0)
        LOG.info("%s", name)

    def replied(self, done: int, total: int) -> None:
        used = self._tracker.progress.metric_calls + self._counting
        self._tracker.update(
            done=done,
            total=total,
            metric_calls=used,
            estimate_seconds=self._estimate(used),
            **self._usage(),
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
            f"Proposal {number} was not better on its minibatch (sum {after:.3f} after "
            f"{before:.3f})."
        )

    def scored(self, candidate: Candidate) -> None:
        self._store.put_candidate(self._job_id, candidate)
        progress = self._tracker.progress
        best = max(candidate.score, progress.best_score or 0.0)
        seed = candidate.score if candidate.number == 0 else progress.seed_score
        self._tracker.update(
            candidates=candidate.number + 1, best_score=best, seed_score=seed, **self._usage()
        )
        name = "The seed" if candidate.number == 0 else f"Candidate {candidate.number}"
        LOG.info("%s scored %.4f on %d examples", name, candidate.score, len(candidate.scores))
        self._tracker.event(
            f"{name} scored {candidate.score:.3f} on {len(candidate.scores)} conversations; "
            f"best so far {best:.3f}."
        )

    def log(self, message: str) -> None:
        LOG.info("gepa: %s", message)

    def finished(self) -> None:
        self._tracker.update(at_once=True, phase="finished", estimate_seconds=0.0, **self._usage())

    def _usage(self) -> dict[str, Any]:
        usage: dict[str, Any] = {"task_usage": self._task.usage}
        if self._reflection is not None:
            usage["reflection_usage"] = self._reflection.usage
        return usage

    def _estimate(self, used: int) -> float | None:
        """Seconds left at the pace so far, if the whole budget is used."""
        if not used or not self._counting:
            return None
        pace = (self._monotonic() - self._started) / used
        return pace * max(0, self._tracker.progress.max_metric_calls - used)
