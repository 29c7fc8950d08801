import math

import pytest

from stash_mcp.checkpoints import RewardStats
from stash_mcp.errors import TrainingError
from stash_mcp.models import PreferencePair
from stash_mcp.reward.calibration import accuracy, length_accuracy, reward_stats


def pair(chosen: str, rejected: str) -> PreferencePair:
    return PreferencePair(
        chosen=chosen,
        rejected=rejected,
        chosen_trace_id="a",
        rejected_trace_id="b",
        granularity="trace",
    )


def test_accuracy_is_the_share_of_pairs_in_the_right_order_with_a_tie_as_half() -> None:
    value = {"high": 2.0, "low": 1.0, "equal": 1.0}

    pairs = [pair("high", "low"), pair("low", "high"), pair("low", "equal"), pair("high", "equal")]

    assert accuracy(pairs, value.__getitem__) == 2.5 / 4


def test_length_accuracy_prefers_the_shorter_text() -> None:
    assert length_accuracy([pair("ab", "abc"), pair("abc", "a"), pair("a", "b")]) == 0.5


def test_stats_count_a_text_as_often_as_it_occurs_and_take_the_population_deviation() -> None:
    rewards = {"a": 3.0, "b": 0.0, "c": -3.0}

    stats = reward_stats([pair("a", "b"), pair("a", "c")], rewards)

    assert stats == RewardStats(mean=0.75, std=math.sqrt(6.1875))


@pytest.mark.parametrize("other", [1.0, 1.0 + 1e-8])
def test_rewards_that_are_all_the_same_fail_the_training(other: float) -> None:
    with pytest.raises(TrainingError, match="std 0"):
        reward_stats([pair("a", "b")], {"a": 1.0, "b": other})


@pytest.mark.parametrize("reward", [math.nan, math.inf])
def test_rewards_that_are_no_numbers_fail_the_training(reward: float) -> None:
    with pytest.raises(TrainingError, match="not numbers"):
        reward_stats([pair("a", "b")], {"a": 1.0, "b": reward})
