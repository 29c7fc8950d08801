"""The front of the shuffle is that of Python's own, whatever the length."""

import random

import pytest

from stash_mcp.datasets.shuffling import shuffled_front

SIZES = [0, 1, 2, 3, 4, 5, 7, 8, 9, 31, 32, 33, 100, 255, 256, 257, 1000, 65_535, 65_536, 65_537]


def shuffled(count: int, seed: int = 0) -> tuple[int, ...]:
    numbers = list(range(count))
    random.Random(seed).shuffle(numbers)
    return tuple(numbers)


@pytest.mark.parametrize("count", SIZES)
def test_all_of_it_is_pythons_own_shuffle(count: int) -> None:
    assert shuffled_front(count, count + 5, 0) == shuffled(count)


@pytest.mark.parametrize("most", [1, 2, 100, 4_000, 199_999])
def test_its_front_is_the_front_of_pythons_own(most: int) -> None:
    assert shuffled_front(200_000, most, 7) == shuffled(200_000, 7)[:most]


@pytest.mark.parametrize("block", [1, 2, 999, 30_000, 65_536])
def test_drawing_it_in_blocks_changes_nothing(block: int) -> None:
    count = 70_000 if block > 100 else 300
    assert shuffled_front(count, 50, 0, block_draws=block) == shuffled(count)[:50]


def test_every_small_length_agrees() -> None:
    for count in range(300):
        assert shuffled_front(count, 10, count) == shuffled(count, count)[:10]
