"""The worker as a process of its own, as the launcher starts it: working, killed, and broken."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from support.staging import Stage
from support.tiny_jobs import WORDS, notes, talks, tiny_base, training
from support.tiny_models import save_tiny_base

from stash_mcp.checkpoints import verify_checkpoint
from stash_mcp.models import JobStatus, RewardModel
from stash_mcp.runs.folder import JobFolder
from stash_mcp.runs.launcher import AT_THE_QUEUE
from stash_mcp.storage.files import try_lock
from stash_mcp.worker.drain import drain

ROOT = Path(__file__).parents[2]
PATIENCE_SECONDS = 60


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    stage = Stage(tmp_path)
    stage.backend.import_traces(talks(), annotations=notes())
    return stage


@contextmanager
def worker(stage: Stage, *folders: Path) -> Iterator[subprocess.Popen[str]]:
    """folders: searched for modules before the real ones."""
    path = os.pathsep.join(str(folder) for folder in (*folders, ROOT))
    process = subprocess.Popen(
        [sys.executable, "-m", "stash_mcp.worker", "--home", str(stage.settings.home)],
        env={**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with process:
        try:
            yield process
        finally:
            process.kill()


def ended(process: "subprocess.Popen[str]") -> tuple[int, str, str]:
    out, err = process.communicate(timeout=PATIENCE_SECONDS)
    return process.returncode, out, err


def model(stage: Stage, model_id: str) -> RewardModel:
    return stage.backend.get_reward_model(model_id)


def until(condition: Callable[[], bool]) -> bool:
    pause = threading.Event()
    return any(condition() or pause.wait(0.02) for _ in range(PATIENCE_SECONDS * 50))


@pytest.mark.timeout(150)
def test_a_worker_does_what_is_queued_and_goes(stage: Stage, base: Path, tmp_path: Path) -> None:
    first = stage.backend.train_reward_model(training(base))
    missing = stage.backend.train_reward_model(training(tmp_path / "nothing"))
    last = stage.backend.train_reward_model(training(base))
    with worker(stage) as process:
        assert ended(process) == (0, f"{AT_THE_QUEUE}\n", "")
    states = [model(stage, job.id) for job in (first, missing, last)]
    assert [state.status for state in states] == [
        JobStatus.SUCCEEDED,
        JobStatus.FAILED,
        JobStatus.SUCCEEDED,
    ]
    times = [time for state in states for time in (state.started_at, state.finished_at)]
    assert times == sorted(time for time in times if time is not None)
    assert "nothing" in (states[1].reason or "")
    for job in (first, last):
        verify_checkpoint(JobFolder(stage.settings.reward_models_dir / job.id).model_path)


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="this system has no SIGKILL")
@pytest.mark.timeout(150)
def test_a_training_whose_worker_is_killed_is_done_by_the_next_one(
    stage: Stage, tmp_path: Path
) -> None:
    base = tmp_path / "base"
    save_tiny_base(base, WORDS, hidden=512, layers=4)
    job = stage.backend.train_reward_model(training(base, epochs=60))
    with worker(stage) as first:
        assert until(lambda: model(stage, job.id).progress.done >= 1)
        with worker(stage) as second:
            # It leaves, although there is work: the first one is alive.
            assert ended(second) == (0, f"{AT_THE_QUEUE}\n", "")
        assert first.poll() is None
        first.send_signal(signal.SIGKILL)
        assert first.wait(PATIENCE_SECONDS) == -signal.SIGKILL
    left = model(stage, job.id)
    assert left.status is JobStatus.RUNNING
    folder = JobFolder(stage.settings.reward_models_dir / job.id)
    assert not folder.model_path.exists()
    with try_lock(stage.settings.worker_lock_path) as free:
        assert free
    # The next attempt need not be slow.
    tiny_base(base)
    drain(stage.settings)
    done = stage.store.get(job.id)
    assert (done.status, done.attempts) == (JobStatus.SUCCEEDED, 2)
    messages = [event.message for event in stage.store.events(job.id)]
    assert "Its worker died; queued again." in messages
    verify_checkpoint(folder.model_path)
    assert not list(stage.settings.home.rglob(".stash-skills-*"))
    assert "attempt 2" in folder.log_path.read_text("utf-8")


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        (
            "raise ImportError('libgomp.so.1: cannot open shared object file')",
            "A library of the local pipeline cannot be loaded: libgomp.so.1: cannot open shared "
            "object file. Install it again: pip install --force-reinstall 'stash-skills[local]'.",
        ),
        (
            "raise OSError('[WinError 126] c10.dll')",
            "A library of the local pipeline cannot be loaded: [WinError 126] c10.dll.",
        ),
        ("raise RuntimeError('NumPy is too new')", "Unexpected: RuntimeError: NumPy is too new"),
    ],
)
def test_a_library_that_cannot_be_loaded_fails_the_jobs_with_words(
    stage: Stage, base: Path, tmp_path: Path, code: str, reason: str
) -> None:
    broken = tmp_path / "broken" / "torch"
    broken.mkdir(parents=True)
    (broken / "__init__.py").write_text(code, encoding="utf-8")
    jobs = [stage.backend.train_reward_model(training(base)) for _ in range(2)]
    with worker(stage, broken.parent) as process:
        assert ended(process) == (0, f"{AT_THE_QUEUE}\n", "")
    for job in jobs:
        state = model(stage, job.id)
        assert state.status is JobStatus.FAILED
        assert (state.reason or "").startswith(reason)
        assert (state.error or "").rstrip().endswith(state.reason or "-")


def test_a_worker_without_a_home_says_how_it_is_called(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "stash_mcp.worker"],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 2
    assert "--home" in done.stderr
