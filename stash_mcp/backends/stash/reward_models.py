"""Reward models that Stash trains and keeps."""

import shutil
from collections.abc import Sequence
from pathlib import Path

from stash_mcp.backends.base import TrainOrder
from stash_mcp.backends.ids import STASH_PREFIX
from stash_mcp.backends.stash import orders, views
from stash_mcp.backends.stash.desk import id_at_stash
from stash_mcp.backends.stash.traces import Traces
from stash_mcp.errors import InputError
from stash_mcp.models import RewardModel
from stash_mcp.stash import download_weights
from stash_mcp.stash.wording import left_out
from stash_mcp.storage.files import os_errors, replace


class RewardModels(Traces):
    def train_reward_model(self, order: TrainOrder) -> RewardModel:
        """On the named conversations, of Stash or of the library and sent there, or on all that
        Stash holds of this account.
        """
        named = order.trace_ids
        ids = self._all_ids() if named is None else self._at_stash(named)
        if not ids:
            raise InputError(
                "There is no conversation in Stash to learn from.",
                "Bring some there first: import with backend=stash, or stash-skills push.",
            )
        name = order.name or f"stash-skills {self._around.clock():%Y-%m-%d %H:%M}"
        asked = orders.training(order, name, ids, self._around.project_dir)
        return views.reward_model(self._models.keep(self._client.train(asked)))

    def _at_stash(self, named: Sequence[str]) -> list[str]:
        return orders.trained_on(self._around.at_stash(self._client, named))

    def list_reward_models(self) -> list[RewardModel]:
        """Those that can be read; `unreached` names the others."""
        listed = self._client.list_reward_models()
        self._unread = left_out(listed.unread, "reward model", STASH_PREFIX)
        return [views.reward_model(self._models.keep(shape)) for shape in listed.rows]

    def get_reward_model(self, reward_model_id: str) -> RewardModel:
        id = id_at_stash(reward_model_id, "reward model")
        shape = self._models.find(id) or self._models.keep(self._client.get_reward_model(id))
        return views.reward_model(shape)

    def export_reward_model(self, reward_model_id: str, path: Path) -> Path:
        """What came of an archive that broke off stays beside `path`, for the next call."""
        id = id_at_stash(reward_model_id, "reward model")
        parts = path.with_name(f".{path.name}.parts")
        fetched = download_weights(self._client, id, parts)
        with os_errors("write", path):
            replace(fetched, path)
            shutil.rmtree(parts)
        return path
