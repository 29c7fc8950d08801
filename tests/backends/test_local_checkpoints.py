"""Reward models that go out and come in, and those that a run must not take."""

import shutil
import stat
import sys
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest
from support.staging import Stage, write_checkpoint

from stash_mcp.backends.base import RunOrder
from stash_mcp.checkpoints import pack, verify_checkpoint
from stash_mcp.errors import CheckpointError, NotFoundError, NotReadyError
from stash_mcp.models import JobStatus
from stash_mcp.runs.folder import JobFolder


def files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def model_path(stage: Stage, model_id: str) -> Path:
    return JobFolder(stage.settings.reward_models_dir / model_id).model_path


def order(model_id: str) -> RunOrder:
    return RunOrder(
        reward_model_id=model_id, task_model="openai/x", reflection_model="builtin/comments"
    )


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    write_checkpoint(tmp_path / "somebody's model")
    return tmp_path / "somebody's model"


# --- in ---


def test_a_folder_is_taken_whole_and_a_run_can_use_it(stage: Stage, checkpoint: Path) -> None:
    stage.conversations()
    model = stage.backend.import_reward_model(checkpoint)
    assert (model.status, model.name, model.imported_from) == (
        JobStatus.SUCCEEDED,
        "somebody's model",
        "somebody's model",
    )
    assert (model.num_pairs, model.metrics, model.finished_at) == (None, None, stage.now)
    given = files(checkpoint)
    shutil.rmtree(checkpoint)
    assert files(model_path(stage, model.id)) == given
    run = stage.backend.start_run(order(model.id)).run
    # It was trained elsewhere, so the run takes every conversation of the library.
    assert run.plan.examples == 12


def test_no_worker_takes_an_imported_model_for_a_training(stage: Stage, checkpoint: Path) -> None:
    stage.backend.import_reward_model(checkpoint, name="theirs")
    assert not stage.store.has_work()
    assert stage.store.requeue_orphans() == []
    [model] = stage.backend.list_reward_models()
    assert (model.name, model.status) == ("theirs", JobStatus.SUCCEEDED)


def test_an_archive_is_taken_and_a_relative_path_starts_at_the_project(
    stage: Stage, checkpoint: Path
) -> None:
    with tarfile.open(stage.settings.project_dir / "model.tar.gz", "w:gz") as tar:
        tar.add(checkpoint, "any-name")
    model = stage.backend.import_reward_model(Path("model.tar.gz"))
    assert model.imported_from == "model.tar.gz"
    assert files(model_path(stage, model.id)) == files(checkpoint)


def test_folders_within_a_checkpoint_come_along(stage: Stage, checkpoint: Path) -> None:
    (checkpoint / "notes").mkdir()
    (checkpoint / "notes" / "card.md").write_text("Trained on support.", encoding="utf-8")
    model = stage.backend.import_reward_model(checkpoint)
    card = model_path(stage, model.id) / "notes" / "card.md"
    assert card.read_text("utf-8") == "Trained on support."


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such modes")
def test_what_is_taken_is_private(stage: Stage, checkpoint: Path) -> None:
    model = stage.backend.import_reward_model(checkpoint)
    folder = model_path(stage, model.id)
    above = [folder.parent, folder.parent.parent, stage.settings.home]
    assert {stat.S_IMODE(path.stat().st_mode) for path in above} == {0o700}
    assert {stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()} == {0o600}


# --- out ---


def test_a_model_goes_out_as_an_archive_and_comes_back_the_same(
    stage: Stage, tmp_path: Path
) -> None:
    stage.conversations()
    model = stage.trained()
    archive = tmp_path / "new folder" / "model.tar.gz"
    assert stage.backend.export_reward_model(model.id, archive) == archive
    with tarfile.open(archive) as tar:
        assert {name.split("/")[0] for name in tar.getnames()} == {"reward-model"}
    other = Stage(tmp_path / "other")
    other.conversations()
    taken = other.backend.import_reward_model(archive, name="from afar")
    assert files(model_path(other, taken.id)) == files(model_path(stage, model.id))
    assert other.backend.start_run(order(taken.id)).run.status is JobStatus.QUEUED


def test_only_a_trained_model_goes_out(stage: Stage, tmp_path: Path) -> None:
    stage.conversations()
    model = stage.train()
    with pytest.raises(NotReadyError, match="is queued, not trained"):
        stage.backend.export_reward_model(model.id, tmp_path / "out.tar.gz")
    with pytest.raises(NotFoundError):
        stage.backend.export_reward_model("rm-9", tmp_path / "out.tar.gz")
    assert not (tmp_path / "out.tar.gz").exists()


# --- what is refused ---


def without_stats(model: Path) -> None:
    (model / "reward_stats.json").unlink()


def with_pickle(model: Path) -> None:
    (model / "optimizer.pt").write_bytes(b"\x80\x04N.")


def with_code(model: Path) -> None:
    (model / "modeling.py").write_text("print('hello')", encoding="utf-8")


def cut_short(model: Path) -> None:
    weights = model / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-2])


def gone(model: Path) -> None:
    shutil.rmtree(model)


damaged = pytest.mark.parametrize(
    ("damage", "problem"),
    [
        (without_stats, "trained before calibration"),
        (with_pickle, r"optimizer\.pt, which can run code"),
        (with_code, r"its own code, modeling\.py"),
        (cut_short, "not a whole safetensors file"),
        (gone, "There is no"),
    ],
)


@damaged
def test_a_run_does_not_take_a_damaged_model_and_is_not_queued(
    stage: Stage, damage: Callable[[Path], None], problem: str
) -> None:
    stage.conversations()
    model = stage.trained()
    damage(model_path(stage, model.id))
    with pytest.raises(CheckpointError, match=problem):
        stage.backend.start_run(order(model.id))
    assert stage.backend.list_runs() == []
    assert not stage.settings.runs_dir.exists()


@pytest.mark.parametrize(
    ("file", "name"),
    [
        ("m.tgz", "m"),
        ("v1.2.tar.gz", "v1.2"),
        ("M.TAR.GZ", "M"),
        ("m", "m"),
        ("m.v2", "m.v2"),
        (".tgz", ".tgz"),
    ],
)
def test_a_model_is_called_after_its_archive_without_the_ending(
    stage: Stage, checkpoint: Path, tmp_path: Path, file: str, name: str
) -> None:
    pack(checkpoint, tmp_path / file)
    model = stage.backend.import_reward_model(tmp_path / file)
    assert (model.name, model.imported_from) == (name, file)


def test_a_folder_keeps_its_whole_name(stage: Stage, checkpoint: Path) -> None:
    folder = checkpoint.rename(checkpoint.with_name("m.tgz"))
    assert stage.backend.import_reward_model(folder).name == "m.tgz"


@damaged
def test_a_damaged_model_is_not_taken_in_and_leaves_nothing(
    stage: Stage, checkpoint: Path, damage: Callable[[Path], None], problem: str
) -> None:
    verify_checkpoint(checkpoint)
    damage(checkpoint)
    with pytest.raises(CheckpointError, match=problem):
        stage.backend.import_reward_model(checkpoint)
    assert stage.backend.list_reward_models() == []
    assert not stage.settings.reward_models_dir.exists()
