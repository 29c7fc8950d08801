"""A training: its folder in, a checkpoint and every trace's score out."""

from collections.abc import Callable

from stash_mcp.models import Job, TrainMetrics, TrainRequest
from stash_mcp.reward.score import RewardScorer
from stash_mcp.reward.train import TrainProgress, train
from stash_mcp.runs.folder import JobFolder
from stash_mcp.runs.store import JobStore
from stash_mcp.settings import Settings
from stash_mcp.worker.logs import LOG
from stash_mcp.worker.tracker import Tracker


def do_training(
    job: Job, settings: Settings, store: JobStore, monotonic: Callable[[], float]
) -> TrainMetrics:
    request = TrainRequest.model_validate(job.request)
    folder = JobFolder(settings.reward_models_dir / job.id)
    tracker = Tracker(store, job.id, monotonic)
    tracker.update(at_once=True, phase="loading the base model")
    LOG.info("training on %s", request.base_model)
    metrics = train(
        folder.pairs(),
        base_model=request.base_model,
        output_dir=folder.model_path,
        epochs=request.epochs,
        learning_rate=request.learning_rate,
        on_progress=_Reporter(tracker),
    )
    LOG.info("metrics: %s", metrics.model_dump_json())
    _score_traces(folder, tracker)
    tracker.update(at_once=True, phase="finished", estimate_seconds=0.0)
    return metrics


class _Reporter:
    """Training steps as progress; the note about its length once, as an event."""

    def __init__(self, tracker: Tracker) -> None:
        self._tracker = tracker
        self._noted: str | None = None

    def __call__(self, progress: TrainProgress) -> None:
        self._tracker.update(
            phase="training",
            done=progress.step,
            total=progress.steps,
            estimate_seconds=progress.seconds_left,
        )
        if progress.note is not None and progress.note != self._noted:
            self._noted = progress.note
            LOG.info("%s", progress.note)
            self._tracker.event(progress.note)


def _score_traces(folder: JobFolder, tracker: Tracker) -> None:
    items = folder.score_items()
    tracker.update(at_once=True, phase="scoring the conversations", done=0, total=len(items))
    rewards = RewardScorer(folder.model_path).rewards([text for _, text in items])
    folder.write_scores(
        [(trace_id, reward) for (trace_id, _), reward in zip(items, rewards, strict=True)]
    )
