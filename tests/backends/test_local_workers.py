"""When the local backend starts a worker, and that it loads nothing heavy itself."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from support.staging import Stage

from stash_mcp.backends.extras import require_extra
from stash_mcp.backends.local import LocalBackend, workshop
from stash_mcp.errors import MissingExtraError
from stash_mcp.settings import Settings
from stash_mcp.storage.files import try_lock

ROOT = Path(__file__).parents[2]
HEAVY = ["torch", "transformers", "litellm", "gepa", "safetensors", "tenacity", "scipy", "numpy"]
# In a process of its own: this one has loaded everything for other tests.
PROGRAM = """
import json, sys
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from support.staging import Stage
stage = Stage(Path(sys.argv[1]))
stage.conversations(24)
model = stage.trained()
training = stage.train()
run = stage.start(model.id)
stage.backend.import_reward_model(stage.settings.reward_models_dir / model.id / "model")
stage.backend.list_runs()
stage.backend.export_reward_model(model.id, Path(sys.argv[1]) / "out.tar.gz")
print(json.dumps({"started": [training.id, run.id], "loaded": sorted(sys.modules)}))
"""


def test_trainings_and_runs_are_started_without_a_heavy_library(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(tmp_path), str(ROOT / "tests")],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    assert done.stderr == ""
    told = json.loads(done.stdout)
    assert told["started"] == ["rm-2", "run-3"]
    assert [name for name in HEAVY if name in told["loaded"]] == []


class Starter:
    """Stands in for starting a worker: counts."""

    def __init__(self) -> None:
        self.started = 0

    def __call__(self, settings: Settings) -> bool:
        self.started += 1
        return True


@pytest.fixture
def starter() -> Starter:
    return Starter()


def open_backend(stage: Stage, starter: Starter) -> LocalBackend:
    return LocalBackend(stage.settings, stage.clock, lambda: "x", starter)


def test_a_worker_is_started_for_each_job_that_is_queued(stage: Stage, starter: Starter) -> None:
    stage.conversations()
    stage.trained()
    stage.backend = open_backend(stage, starter)
    assert starter.started == 0
    stage.train()
    assert starter.started == 1
    stage.start("rm-1")
    assert starter.started == 2


def test_whoever_opens_the_library_carries_on_what_was_left(stage: Stage, starter: Starter) -> None:
    stage.conversations()
    open_backend(stage, starter)
    assert starter.started == 0
    stage.train()
    open_backend(stage, starter)
    assert starter.started == 1


def test_whoever_looks_at_a_job_carries_it_on_but_not_at_every_look(
    stage: Stage, starter: Starter, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage.conversations()
    backend = open_backend(stage, starter)
    job = stage.train()
    for _ in range(3):
        backend.get_reward_model(job.id)
        backend.list_runs()
    assert starter.started == 0
    monkeypatch.setattr(workshop, "REVIVE_SECONDS", -1.0)
    backend.get_reward_model(job.id)
    assert starter.started == 1
    stage.begin()
    stage.store.succeed(job.id, "{}")
    backend.get_reward_model(job.id)
    assert starter.started == 1


def test_a_living_worker_is_left_alone(stage: Stage) -> None:
    stage.conversations()
    stage.train()
    with try_lock(stage.settings.worker_lock_path) as ours:
        assert ours
        LocalBackend(stage.settings, stage.clock, lambda: "x")
    assert not (stage.settings.home / "worker.log").exists()


def test_a_missing_library_of_the_local_part_is_found_without_loading_any(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    require_extra("local", "This")
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None if name == "gepa" else name)
    with pytest.raises(MissingExtraError, match=r"This needs the optional part 'local'") as caught:
        require_extra("local", "This")
    assert caught.value.extra == "local"
