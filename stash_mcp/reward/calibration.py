"""What the rewards of pairs say: how often the better one wins, and the scale of rewards."""

import math
from collections.abc import Callable, Mapping, Sequence
from statistics import fmean, pstdev

from stash_mcp.checkpoints import RewardStats
from stash_mcp.errors import TrainingError
from stash_mcp.models import PreferencePair

# Float32 rewards that differ by less tell nothing apart.
_SMALLEST_STD = 1e-6


def accuracy(pairs: Sequence[PreferencePair], value: Callable[[str], float]) -> float:
    """Share of `pairs` (at least one) whose chosen text has the higher value; a tie is half."""
    return fmean(_win(value(pair.chosen), value(pair.rejected)) for pair in pairs)


def length_accuracy(pairs: Sequence[PreferencePair]) -> float:
    """Accuracy of "the shorter conversation, in characters, is the better one"."""
    return accuracy(pairs, lambda text: -len(text))


def reward_stats(pairs: Sequence[PreferencePair], rewards: Mapping[str, float]) -> RewardStats:
    """Mean and population standard deviation over both texts of each pair.

    A text counts as often as it occurs. Raises TrainingError if all rewards are the same.
    """
    values = [rewards[text] for pair in pairs for text in (pair.chosen, pair.rejected)]
    if not all(math.isfinite(value) for value in values):
        raise TrainingError(
            "The trained model gives rewards that are not numbers.",
            "Train again with a lower learning rate.",
        )
    std = pstdev(values)
    if std < _SMALLEST_STD:
        raise TrainingError(
            "The trained model gives every conversation the same reward (std 0).",
            "Rate more and clearly different conversations, or raise the epochs.",
        )
    return RewardStats(mean=fmean(values), std=std)


def _win(better: float, worse: float) -> float:
    return 0.5 if better == worse else float(better > worse)
