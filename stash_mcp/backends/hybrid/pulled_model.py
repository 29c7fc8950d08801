"""A reward model of Stash into the library, whole and checked, as if it had been imported."""

import shutil
from collections.abc import Callable
from datetime import datetime

from pydantic import ValidationError

from stash_mcp.backends.hybrid.report import Say
from stash_mcp.backends.ids import shown
from stash_mcp.checkpoints import Origin, unpack, verify_checkpoint
from stash_mcp.errors import CheckpointError, NotFoundError
from stash_mcp.models import JobKind, JobStatus, TrainMetrics, TrainRequest
from stash_mcp.runs.folder import JobFolder
from stash_mcp.runs.store import JobStore
from stash_mcp.settings import Settings
from stash_mcp.stash import StashClient, download_weights
from stash_mcp.stash.shapes import RewardModelShape
from stash_mcp.stash.states import not_there
from stash_mcp.storage.database import Database
from stash_mcp.storage.files import os_errors

_BY_PAIRS = "Stash did not hold out whole conversations when it measured this model"


def model_id(remote_id: str) -> str:
    """Its id here: the same at every pull."""
    return f"rm-stash-{remote_id}"


def require_trained(model: RewardModelShape) -> None:
    """StashNotReadyError where it has no weights yet, or never will."""
    error = not_there(model, "reward model", "checkpoint")
    if error is not None:
        raise error


class ModelPull:
    def __init__(
        self, client: StashClient, settings: Settings, clock: Callable[[], datetime], say: Say
    ) -> None:
        self._client = client
        self._settings = settings
        self._jobs = JobStore(Database(settings.library_path), clock)
        self._say = say

    def is_here(self, remote_id: str) -> bool:
        try:
            job = self._jobs.get(model_id(remote_id), JobKind.TRAIN)
            verify_checkpoint(self._folder(remote_id).model_path)
        except (NotFoundError, CheckpointError):
            return False
        return job.status is JobStatus.SUCCEEDED

    def run(self, model: RewardModelShape, local_trace_ids: tuple[str, ...]) -> str:
        """The model's id here. A download that broke off is carried on by the next call."""
        require_trained(model)
        if not self.is_here(model.id):
            self._say("Fetching the reward model; a broken download is carried on by another pull.")
            self._unpack(model.id)
        self._register(model, local_trace_ids)
        return model_id(model.id)

    def _folder(self, remote_id: str) -> JobFolder:
        return JobFolder(self._settings.reward_models_dir / model_id(remote_id))

    def _unpack(self, remote_id: str) -> None:
        downloads = self._settings.home / "downloads"
        archive = download_weights(self._client, remote_id, downloads)
        folder = self._folder(remote_id)
        with os_errors("remove", folder.path):
            # What was there is no model: a kill left it, or somebody changed it.
            if folder.path.exists():
                shutil.rmtree(folder.path)
        try:
            with folder.created():
                unpack(archive, folder.model_path, origin=_origin(remote_id))
        finally:
            # A damaged archive does not get better: the next pull fetches another.
            with os_errors("remove", archive):
                archive.unlink(missing_ok=True)

    def _register(self, model: RewardModelShape, local_trace_ids: tuple[str, ...]) -> None:
        job_id = model_id(model.id)
        request = TrainRequest(
            base_model=model.base_model,
            epochs=max(1, min(model.epochs, 100)),
            max_pairs=max(2, model.max_pairs),
            trace_ids=local_trace_ids,
            num_pairs=model.num_pairs or 0,
            imported_from=shown(model.id),
        )
        metrics = _metrics(model)
        result = "{}" if metrics is None else f'{{"metrics": {metrics.model_dump_json()}}}'
        try:
            self._jobs.get(job_id)
        except NotFoundError:
            self._jobs.create(job_id, JobKind.TRAIN, model.name, request, result=result)
            self._say(
                f"{job_id} is the newest reward model here now, which a run on this machine takes "
                "where none is named."
            )


def _origin(remote_id: str) -> Origin:
    """The file of the download is gone when a message is read, so it is called after its model."""
    return Origin(
        f"The archive of the reward model {shown(remote_id)}",
        model=shown(remote_id),
        again="Nothing of it is kept. Train the model again at Stash, or report it to Stash.",
        damaged="The archive is damaged: fetch it again with another pull. Nothing of it is kept.",
    )


def _metrics(model: RewardModelShape) -> TrainMetrics | None:
    """As Stash measured them. An accuracy on conversations that it trained on counts as none."""
    given = model.metrics or {}
    try:
        metrics = TrainMetrics.model_validate(given)
    except ValidationError:
        return None
    if given.get("eval_split") == "trace":
        return metrics
    unknown = {"eval_accuracy": None, "eval_accuracy_reason": _BY_PAIRS}
    return metrics.model_copy(update=unknown)
