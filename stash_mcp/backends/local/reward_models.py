"""Reward models of the local library: trained here, or taken from elsewhere."""

import shutil
from pathlib import Path

from stash_mcp.backends import views
from stash_mcp.backends.base import TrainOrder
from stash_mcp.backends.extras import require_extra
from stash_mcp.backends.ids import refuse_stash_ids
from stash_mcp.backends.local.workshop import Workshop
from stash_mcp.checkpoints import pack, staged_folder, unpack, verify_whole_checkpoint
from stash_mcp.datasets.pairs import build_pairs
from stash_mcp.errors import InputError, UnsupportedError
from stash_mcp.models import JobKind, RewardModel, TrainRequest
from stash_mcp.rendering import render_steps
from stash_mcp.storage.files import PRIVATE_DIR_MODE, PRIVATE_FILE_MODE, os_errors

_NAME_CHARACTERS = 200
_ARCHIVE_ENDINGS = (".tar.gz", ".tgz", ".gz", ".tar")


class RewardModels(Workshop):
    def train_reward_model(self, order: TrainOrder) -> RewardModel:
        require_extra("local", "Training a reward model on this machine")
        refuse_stash_ids(order.trace_ids or ())
        if order.training_config is not None:
            raise UnsupportedError(
                "training_config is of Stash alone; a training on this machine has no such thing.",
                "Leave it out, or train at Stash (backend=stash).",
            )
        trace_ids = self._library.matching_ids(order.trace_ids)
        annotations = self._library.annotations(trace_ids)
        pairs = build_pairs(self._library.traces(trace_ids), annotations, order.max_pairs)
        request = TrainRequest(
            base_model=self._base_model(order.base_model),
            epochs=order.epochs,
            max_pairs=order.max_pairs,
            learning_rate=order.learning_rate,
            trace_ids=trace_ids,
            num_pairs=len(pairs),
        )
        job_id = f"rm-{self._new_id()}"
        folder = self._model_folder(job_id)
        with folder.created():
            folder.create_training(request, pairs)
            folder.write_score_items(
                [(trace.id, render_steps(trace.steps)) for trace in self._library.traces(trace_ids)]
            )
            self._jobs.create(job_id, JobKind.TRAIN, order.name or job_id, request)
        self._start_worker(self._settings)
        return self.get_reward_model(job_id)

    def _base_model(self, name: str) -> str:
        """A folder becomes absolute: the worker stands in another one. A hub's id stays."""
        try:
            folder = (self._settings.project_dir / Path(name).expanduser()).absolute()
            return str(folder) if folder.is_dir() else name
        except (OSError, RuntimeError) as error:
            raise InputError(
                f"The base model '{name[:_NAME_CHARACTERS]}' is no name of a model or "
                f"folder: {getattr(error, 'strerror', None) or error}.",
                "Give a model of the Hugging Face hub, or the path of a folder.",
            ) from error

    def import_reward_model(self, path: Path, name: str | None = None) -> RewardModel:
        job_id = f"rm-{self._new_id()}"
        path = self._settings.project_dir / path.expanduser()
        folder = self._model_folder(job_id)
        request = TrainRequest(base_model="(imported)", imported_from=path.name)
        with folder.created():
            _take(path, folder.model_path)
            self._jobs.create(job_id, JobKind.TRAIN, name or _name(path), request, result="{}")
        return self.get_reward_model(job_id)

    def export_reward_model(self, reward_model_id: str, path: Path) -> Path:
        self._trained(reward_model_id)
        pack(self._model_folder(reward_model_id).model_path, path)
        return path

    def list_reward_models(self) -> list[RewardModel]:
        self._revive()
        return [views.reward_model(job) for job in self._jobs.all(JobKind.TRAIN)]

    def get_reward_model(self, reward_model_id: str) -> RewardModel:
        self._revive()
        job = self._jobs.get(reward_model_id, JobKind.TRAIN)
        return views.reward_model(job).model_copy(update={"stalled": self._stalled(job)})


def _name(path: Path) -> str:
    """What a model is called after its folder or archive: the archive without its ending."""
    if path.is_dir():
        return path.name
    ending = next((end for end in _ARCHIVE_ENDINGS if path.name.lower().endswith(end)), "")
    return path.name[: len(path.name) - len(ending)] or path.name


def _take(path: Path, into: Path) -> None:
    """A copy of the checkpoint at `path`, a folder or an archive of one, checked."""
    if not path.is_dir():
        unpack(path, into)
        return
    verify_whole_checkpoint(path)
    with staged_folder(into) as folder, os_errors("copy", path):
        _copy(path, folder)


def _copy(source: Path, into: Path) -> None:
    """Not `shutil.copytree`, which hides a full disk in an error of its own and copies modes."""
    for path in sorted(source.rglob("*")):
        target = into / path.relative_to(source)
        if path.is_dir():
            target.mkdir(mode=PRIVATE_DIR_MODE)
        else:
            shutil.copyfile(path, target)
            target.chmod(PRIVATE_FILE_MODE)
