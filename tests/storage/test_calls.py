from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from stash_mcp.storage.calls import CallStore, call_key


class Clock:
    def __init__(self) -> None:
        self.now = datetime(2026, 1, 1, tzinfo=UTC)

    def __call__(self) -> datetime:
        self.now += timedelta(hours=2)
        return self.now


@pytest.fixture
def make_store(tmp_path: Path) -> Callable[[int], CallStore]:
    clock = Clock()
    return lambda max_bytes: CallStore(tmp_path / "calls.db", clock, max_bytes)


def test_a_kept_answer_comes_back_from_another_store_over_the_same_file(
    make_store: Callable[[int], CallStore],
) -> None:
    make_store(1000).put("k", "answer ü")
    assert make_store(1000).get("k") == "answer ü"
    assert make_store(1000).get("other") is None


def test_the_key_is_of_everything_and_not_of_the_order() -> None:
    one = call_key(model="m", messages=[{"role": "user", "content": "x"}], repetition=0)
    assert one == call_key(repetition=0, messages=[{"content": "x", "role": "user"}], model="m")
    changed = (
        call_key(model="n", messages=[{"role": "user", "content": "x"}], repetition=0),
        call_key(model="m", messages=[{"role": "user", "content": "y"}], repetition=0),
        call_key(model="m", messages=[{"role": "user", "content": "x"}], repetition=1),
    )
    assert one not in changed
    assert len(set(changed)) == 3


def test_many_are_kept_together_and_only_the_known_ones_come_back(
    make_store: Callable[[int], CallStore],
) -> None:
    store = make_store(1000)
    store.put_many({"a": "1", "b": "2"})
    assert store.get_many(["a", "b", "c"]) == {"a": "1", "b": "2"}


def test_beyond_its_size_the_ones_not_used_for_longest_go(
    make_store: Callable[[int], CallStore],
) -> None:
    store = make_store(10_000)
    for number in range(150):
        store.put(f"k{number}", "x" * 100)
    assert store.get("k0") is not None
    for number in range(150, 402):
        store.put(f"k{number}", "x" * 100)
    assert store.stats().bytes <= 10_000
    assert store.get("k401") is not None
    assert store.get("k1") is None


def test_clearing_forgets_everything_and_says_how_much_that_was(
    make_store: Callable[[int], CallStore],
) -> None:
    store = make_store(1000)
    store.put("a", "12345")
    before = store.clear()
    assert (before.entries, before.bytes) == (1, 5)
    assert store.stats().entries == 0
    assert store.get("a") is None
