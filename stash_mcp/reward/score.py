"""Scores of rendered conversations: sigmoid((reward - mean) / std), from 0 to 1."""

import math
from collections.abc import Sequence
from pathlib import Path

import torch

from stash_mcp.checkpoints import verify_checkpoint
from stash_mcp.errors import CheckpointError
from stash_mcp.reward.device import best_device
from stash_mcp.reward.loading import load_checkpoint


class RewardScorer:
    """A checkpoint in memory. Not to be used by two threads at once."""

    def __init__(self, checkpoint: Path, device: torch.device | None = None) -> None:
        """Verify and load. Raises CheckpointError; `device` defaults to the best one here."""
        self._stats = verify_checkpoint(checkpoint)
        self._network = load_checkpoint(checkpoint, device or best_device())
        self._checkpoint = checkpoint

    @property
    def max_length(self) -> int:
        """Tokens kept of each text; what a longer one loses depends on the input version."""
        return self._network.max_length

    def score(self, texts: Sequence[str]) -> list[float]:
        """The score of each text, 0 to 1, in the order given; 0.5 is an average training text."""
        mean, std = self._stats.mean, self._stats.std
        return [_sigmoid((reward - mean) / std) for reward in self.rewards(texts)]

    def rewards(self, texts: Sequence[str]) -> list[float]:
        """The model's own, unbounded values, in the order given."""
        rewards = self._network.rewards(texts)
        if not all(math.isfinite(reward) for reward in rewards.values()):
            raise CheckpointError(
                f"The reward model {self._checkpoint} gives rewards that are not numbers.",
                "Train the reward model again.",
            )
        return [rewards[text] for text in texts]


def _sigmoid(value: float) -> float:
    # The exponent is never positive, so it cannot overflow.
    if value >= 0:
        return 1 / (1 + math.exp(-value))
    power = math.exp(value)
    return power / (1 + power)
