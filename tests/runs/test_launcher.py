"""Starting real workers: at most one, detached from whoever started it."""

import os
import stat
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from support.staging import Stage

from stash_mcp.errors import StorageError
from stash_mcp.models import JobStatus
from stash_mcp.runs.launcher import ensure_worker, spawn_worker
from stash_mcp.storage.files import try_lock

ROOT = Path(__file__).parents[2]
PATIENCE_SECONDS = 30
STARTER = """
import sys
from pathlib import Path
from stash_mcp.runs.launcher import ensure_worker
from stash_mcp.settings import load_settings
print(ensure_worker(load_settings()))
"""


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Stage:
    """With a torch that cannot be loaded, so that a worker's jobs fail at once."""
    broken = tmp_path / "broken" / "torch"
    broken.mkdir(parents=True)
    (broken / "__init__.py").write_text("raise ImportError('no torch here')", encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(broken.parent), str(ROOT)]))
    stage = Stage(tmp_path)
    monkeypatch.setenv("STASH_MCP_HOME", str(stage.settings.home))
    return stage


def reapers() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "worker-reaper"]


def gone() -> bool:
    """Whether every worker that this process started has ended, and is no zombie."""
    for thread in reapers():
        thread.join(PATIENCE_SECONDS)
    return not reapers()


def until(condition: Callable[[], bool]) -> bool:
    pause = threading.Event()
    return any(condition() or pause.wait(0.05) for _ in range(PATIENCE_SECONDS * 20))


def test_a_worker_is_started_and_takes_its_home(stage: Stage) -> None:
    stage.conversations()
    model = stage.train()
    assert ensure_worker(stage.settings)
    assert gone()
    failed = stage.backend.get_reward_model(model.id)
    assert failed.status is JobStatus.FAILED
    assert "no torch here" in (failed.reason or "")
    log = stage.settings.home / "worker.log"
    assert log.read_text("utf-8") == "The worker has come to the queue.\n"
    if sys.platform != "win32":
        assert stat.S_IMODE(log.stat().st_mode) == 0o600


def test_no_worker_is_started_while_one_is_alive(stage: Stage) -> None:
    stage.conversations()
    stage.train()
    with try_lock(stage.settings.worker_lock_path) as ours:
        assert ours
        assert not ensure_worker(stage.settings)
    assert reapers() == []
    assert not (stage.settings.home / "worker.log").exists()


def test_a_worker_goes_on_when_whoever_started_it_has_ended(stage: Stage) -> None:
    stage.conversations()
    model = stage.train()
    starter = subprocess.run([sys.executable, "-c", STARTER], capture_output=True, text=True)
    assert (starter.stdout, starter.stderr) == ("True\n", "")
    assert until(lambda: stage.backend.get_reward_model(model.id).status.is_final)


def test_a_home_that_cannot_be_written_is_named(stage: Stage) -> None:
    (stage.settings.home / "worker.log").mkdir()
    with pytest.raises(StorageError, match=r"worker\.log"):
        spawn_worker(stage.settings)
    assert reapers() == []
