"""A training: its folder in, a checkpoint and every trace's score out."""

import shutil
from collections.abc import Callable

from stash_mcp.models import Job, TrainMetrics, TrainRequest
from stash_mcp.reward.progress import TrainProgress
from stash_mcp.reward.score import RewardScorer
from stash_mcp.reward.train import train
from stash_mcp.runs.folder import JobFolder
from stash_mcp.runs.store import JobStore
from stash_mcp.settings import Settings
from stash_mcp.worker.logs import LOG
from stash_mcp.worker.tracker import Tracker

_PHASES = {
    "loading": "loading the base model",
    "training": "training",
    "measuring": "measuring on held-out pairs",
    "saving": "saving the reward model",
}


def do_training(
    job: Job, settings: Settings, store: JobStore, monotonic: Callable[[], float]
) -> TrainMetrics:
    request = TrainRequest.model_validate(job.request)
    folder = JobFolder(settings.reward_models_dir / job.id)
    tracker = Tracker(store, job.id, monotonic)
    _remove_leftovers(folder)
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
    done = tracker.progress.total
    tracker.update(at_once=True, phase="finished", done=done, estimate_seconds=0.0)
    return metrics


def _remove_leftovers(folder: JobFolder) -> None:
    """What a worker left that was killed while it saved: as large as the model."""
    for leftover in folder.path.glob(".stash-skills-*"):
        shutil.rmtree(leftover, ignore_errors=True)


class _Reporter:
    """Training steps as progress; the first estimate and what a training notes, as events."""

    def __init__(self, tracker: Tracker) -> None:
        self._tracker = tracker
        self._estimated = False

    def __call__(self, progress: TrainProgress) -> None:
        self._tracker.update(
            phase=_PHASES[progress.phase],
            done=progress.step,
            total=progress.steps,
            estimate_seconds=progress.seconds_left,
        )
        if progress.seconds_left is not None and not self._estimated:
            self._estimated = True
            self._say(
                f"{progress.steps} training steps take about {progress.seconds_left:.0f} s more."
            )
        if progress.note is not None:
            self._say(progress.note)

    def _say(self, message: str) -> None:
        LOG.info("%s", message)
        self._tracker.event(message)


def _score_traces(folder: JobFolder, tracker: Tracker) -> None:
    items = folder.score_items()
    tracker.update(at_once=True, phase="scoring the conversations", done=0, total=len(items))
    rewards = RewardScorer(folder.model_path).rewards([text for _, text in items])
    folder.write_scores(
        [(trace_id, reward) for (trace_id, _), reward in zip(items, rewards, strict=True)]
    )
