"""A job that no worker comes to says why."""

import os
import threading
from pathlib import Path

import pytest
from support.staging import Stage

from stash_mcp.backends.local import workshop
from stash_mcp.runs.launcher import AT_THE_QUEUE, last_start, spawn_worker, worker_log
from stash_mcp.storage.files import try_lock

ROOT = Path(__file__).parents[2]
PATIENCE_SECONDS = 30


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    stage = Stage(tmp_path)
    stage.conversations()
    return stage


def said(stage: Stage, text: str, age: float = 60) -> None:
    """The output of the last worker, written so long ago."""
    log = worker_log(stage.settings)
    log.write_text(text, encoding="utf-8")
    then = log.stat().st_mtime - age
    os.utime(log, (then, then))


def stalled(stage: Stage) -> str | None:
    return stage.backend.get_reward_model("rm-1").stalled


def test_a_worker_that_cannot_start_is_named_with_its_last_words(
    stage: Stage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = tmp_path / "broken"
    broken.mkdir()
    (broken / "filelock.py").write_text("raise ImportError('no locks here')", encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(broken), str(ROOT)]))
    stage.train()
    spawn_worker(stage.settings)
    for thread in threading.enumerate():
        if thread.name == "worker-reaper":
            thread.join(PATIENCE_SECONDS)
    log = worker_log(stage.settings)
    said(stage, log.read_text("utf-8"))
    words = stalled(stage) or ""
    assert "No worker is at work, and the last one could not start: ImportError: no locks" in words
    assert str(log) in words


def test_a_run_says_it_too_and_a_worker_that_is_at_work_ends_it(stage: Stage) -> None:
    run = stage.start(stage.trained().id)
    said(stage, "Traceback\nMemoryError")
    assert "could not start: MemoryError" in (stage.backend.get_run(run.id).stalled or "")
    with try_lock(stage.settings.worker_lock_path) as ours:
        assert ours
        assert stage.backend.get_run(run.id).stalled is None


@pytest.mark.parametrize(
    ("text", "age"),
    [("", 1), ("a library warns", 0), (f"{AT_THE_QUEUE}\nTraceback\nKilled", 60)],
)
def test_one_that_starts_or_has_come_to_the_queue_is_no_failure(
    stage: Stage, text: str, age: float
) -> None:
    stage.train()
    said(stage, text, age)
    assert stalled(stage) is None


def test_one_that_ended_without_a_word_is_a_failure_after_a_while(stage: Stage) -> None:
    stage.train()
    said(stage, "", age=60)
    assert "ended without a word" in (stalled(stage) or "")


def test_the_words_stay_while_the_next_one_is_started(stage: Stage) -> None:
    stage.train()
    said(stage, "ImportError: no")
    late = workshop.Workshop(
        stage.settings, stage.clock, lambda: "x", lambda _settings: bool(said(stage, "", age=0))
    )
    assert last_start(stage.settings).is_fresh
    assert "ImportError: no" in (late._stalled(stage.store.get("rm-1")) or "")


def test_a_missing_part_and_a_missing_key_are_named(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-abcdefgh")
    run = stage.start(stage.trained().id)
    monkeypatch.delenv("OPENAI_API_KEY")
    assert "needs OPENAI_API_KEY" in (stage.backend.get_run(run.id).stalled or "")
    monkeypatch.setattr(workshop, "has_extra", lambda extra: False)
    assert "optional part 'local'" in (stage.backend.get_run(run.id).stalled or "")
