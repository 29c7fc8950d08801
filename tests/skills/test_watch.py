import queue
import shutil
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from stash_mcp.skills.watch import hints

PATIENCE_SECONDS = 20
# Far beyond the test's patience: a hint that comes was sent by an event.
NEVER = 3600.0


@pytest.fixture
def watching() -> Iterator[Callable[[Path, float], "queue.Queue[None]"]]:
    stop = threading.Event()
    threads: list[threading.Thread] = []

    def start(folder: Path, poll_seconds: float) -> "queue.Queue[None]":
        seen: queue.Queue[None] = queue.Queue()

        def run() -> None:
            for hint in hints(folder, stop, poll_seconds):
                seen.put(hint)

        threads.append(threading.Thread(target=run))
        threads[-1].start()
        return seen

    yield start
    stop.set()
    for thread in threads:
        thread.join(PATIENCE_SECONDS)
        assert not thread.is_alive()


def drained(seen: "queue.Queue[None]") -> None:
    while not seen.empty():
        seen.get_nowait()


def test_the_first_hint_comes_without_an_event(
    tmp_path: Path, watching: Callable[[Path, float], "queue.Queue[None]"]
) -> None:
    assert watching(tmp_path, NEVER).get(timeout=PATIENCE_SECONDS) is None


def test_a_file_deep_below_that_appears_is_a_hint_even_in_folders_that_are_often_ignored(
    tmp_path: Path, watching: Callable[[Path, float], "queue.Queue[None]"]
) -> None:
    (tmp_path / "node_modules").mkdir()
    seen = watching(tmp_path, NEVER)
    seen.get(timeout=PATIENCE_SECONDS)
    (tmp_path / "node_modules" / "result.json").write_text("{}", encoding="utf-8")
    assert seen.get(timeout=PATIENCE_SECONDS) is None


def test_a_folder_renamed_into_it_is_a_hint(
    tmp_path: Path, watching: Callable[[Path, float], "queue.Queue[None]"]
) -> None:
    watched = tmp_path / "watched"
    watched.mkdir()
    (tmp_path / "made").mkdir()
    seen = watching(watched, NEVER)
    seen.get(timeout=PATIENCE_SECONDS)
    (tmp_path / "made").rename(watched / "made")
    assert seen.get(timeout=PATIENCE_SECONDS) is None


def test_a_folder_that_is_removed_and_made_again_is_watched_again(
    tmp_path: Path, watching: Callable[[Path, float], "queue.Queue[None]"]
) -> None:
    watched = tmp_path / "watched"
    watched.mkdir()
    seen = watching(watched, NEVER)
    seen.get(timeout=PATIENCE_SECONDS)
    shutil.rmtree(watched)
    # While it is missing it is looked for again and again.
    seen.get(timeout=PATIENCE_SECONDS)
    watched.mkdir()
    for _ in range(3):
        seen.get(timeout=PATIENCE_SECONDS)
        drained(seen)
        (watched / "result.json").write_text("{}", encoding="utf-8")
        if seen.get(timeout=PATIENCE_SECONDS) is None:
            return
    pytest.fail("it stayed deaf")


def test_without_events_it_looks_at_intervals(
    tmp_path: Path, watching: Callable[[Path, float], "queue.Queue[None]"]
) -> None:
    seen = watching(tmp_path, 0.2)
    for _ in range(3):
        assert seen.get(timeout=PATIENCE_SECONDS) is None


# --- where no events arrive, simulated ---


@pytest.mark.parametrize(
    "error", [OSError(28, "OS file watch limit reached"), RuntimeError("error in underlying watch")]
)
def test_a_folder_that_cannot_be_watched_is_looked_at_at_intervals(
    tmp_path: Path,
    watching: Callable[[Path, float], "queue.Queue[None]"],
    monkeypatch: pytest.MonkeyPatch,
    error: Exception,
) -> None:
    def refused(*paths: Path, **options: object) -> Iterator[None]:
        raise error

    monkeypatch.setattr("stash_mcp.skills.watch.watch", refused)
    monkeypatch.setattr("stash_mcp.skills.watch.MISSING_SECONDS", 0.05)
    seen = watching(tmp_path, NEVER)
    for _ in range(3):
        assert seen.get(timeout=PATIENCE_SECONDS) is None


def test_without_the_systems_events_a_new_file_is_found_by_polling(
    tmp_path: Path,
    watching: Callable[[Path, float], "queue.Queue[None]"],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("WATCHFILES_FORCE_POLLING", "1")
    seen = watching(tmp_path, NEVER)
    seen.get(timeout=PATIENCE_SECONDS)
    (tmp_path / "result.json").write_text("{}", encoding="utf-8")
    assert seen.get(timeout=PATIENCE_SECONDS) is None


def test_an_event_is_followed_by_one_more_look(
    tmp_path: Path, watching: Callable[[Path, float], "queue.Queue[None]"]
) -> None:
    seen = watching(tmp_path, NEVER)
    seen.get(timeout=PATIENCE_SECONDS)
    (tmp_path / "result.json").write_text("{}", encoding="utf-8")
    for _ in range(2):
        assert seen.get(timeout=PATIENCE_SECONDS) is None
