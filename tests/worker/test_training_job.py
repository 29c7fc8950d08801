"""A training as the worker does it, with a real small model."""

import errno
import json
import os
import stat
import sys
from pathlib import Path

import pytest
from support.staging import Stage
from support.tiny_jobs import notes, talks, training

from stash_mcp.checkpoints import verify_checkpoint
from stash_mcp.models import JobStatus, TrainRequest
from stash_mcp.runs.folder import JobFolder
from stash_mcp.worker.drain import drain

# The contract's, and none of ours.
FILES = {
    "job.json",
    "pairs.jsonl",
    "score_items.jsonl",
    "result.json",
    "scores.jsonl",
    "model",
    "worker.log",
}
METRICS = {
    "train_pairs",
    "eval_pairs",
    "eval_accuracy",
    "eval_split",
    "excluded_cross_trace_pairs",
    "final_loss",
    "epochs",
    "device",
    "seconds",
}


@pytest.fixture
def trained(stage: Stage, base: Path) -> JobFolder:
    """Trained on 8 conversations, of which one more has no rating."""
    stage.backend.import_traces(talks(9), annotations=notes(8))
    model = stage.backend.train_reward_model(training(base, name="small", epochs=4))
    drain(stage.settings)
    state = stage.backend.get_reward_model(model.id)
    assert state.status is JobStatus.SUCCEEDED, state.error
    return JobFolder(stage.settings.reward_models_dir / model.id)


def test_the_folder_holds_the_contracts_files_and_no_others(trained: JobFolder) -> None:
    assert {path.name for path in trained.path.iterdir()} == FILES
    assert verify_checkpoint(trained.model_path).std > 0
    tokenizer = json.loads((trained.model_path / "tokenizer_config.json").read_bytes())
    assert tokenizer["truncation_side"] == "left"


def test_the_result_has_the_contracts_shape(trained: JobFolder, stage: Stage) -> None:
    result = json.loads(trained.result_path.read_bytes())
    metrics = result["metrics"]
    assert metrics.keys() >= METRICS
    assert metrics["eval_split"] == "trace"
    assert metrics["epochs"] == 4
    pairs = metrics["train_pairs"] + metrics["eval_pairs"]
    assert pairs + metrics["excluded_cross_trace_pairs"] == len(trained.pairs()) == 16
    [model] = stage.backend.list_reward_models()
    assert model.metrics is not None
    assert model.metrics.model_dump(mode="json") == metrics


def test_every_conversation_is_scored_the_good_ones_higher(trained: JobFolder) -> None:
    lines = (trained.path / "scores.jsonl").read_text("utf-8").splitlines()
    rows = [json.loads(line) for line in lines]
    assert [row["trace_id"] for row in rows] == [f"talk-{number}" for number in range(9)]
    good = [row["score"] for row in rows[0::2]]
    bad = [row["score"] for row in rows[1::2]]
    assert min(good) > max(bad)


def test_what_happened_is_told(trained: JobFolder, stage: Stage) -> None:
    [model] = stage.backend.list_reward_models()
    assert (model.name, model.progress.phase) == ("small", "finished")
    messages = [event.message for event in stage.backend.events(model.id)]
    assert any("training steps take about" in message for message in messages)
    assert any("reads the last 64 tokens" in message for message in messages)
    assert messages[-1] == "The job succeeded."
    log = trained.log_path.read_text("utf-8")
    assert "training on" in log
    assert log.rstrip().endswith("INFO done")


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such modes")
def test_what_the_worker_writes_is_private(trained: JobFolder, stage: Stage) -> None:
    folders = [stage.settings.home, stage.settings.reward_models_dir, trained.path]
    assert {stat.S_IMODE(path.stat().st_mode) for path in folders} == {0o700}
    files = [path for path in trained.path.iterdir() if path.is_file()]
    assert {stat.S_IMODE(path.stat().st_mode) for path in files} == {0o600}
    # Others cannot reach it, whatever its own mode is.
    assert trained.model_path.is_relative_to(stage.settings.home)


def test_a_disk_that_fills_up_in_the_middle_fails_the_training_with_words(
    stage: Stage, base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fsync(_handle: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    stage.backend.import_traces(talks(), annotations=notes())
    job = stage.backend.train_reward_model(training(base))
    monkeypatch.setattr(os, "fsync", fsync)
    drain(stage.settings)
    state = stage.backend.get_reward_model(job.id)
    assert state.status is JobStatus.FAILED
    assert "No space left on device" in (state.reason or "")
    assert "Free some space on that disk" in (state.reason or "")
    folder = JobFolder(stage.settings.reward_models_dir / job.id)
    assert {path.name for path in folder.path.iterdir()} == FILES - {
        "result.json",
        "scores.jsonl",
        "model",
    }


def test_a_second_attempt_writes_the_same_model_again(trained: JobFolder, stage: Stage) -> None:
    weights = (trained.model_path / "model.safetensors").read_bytes()
    job = stage.store.get("rm-1")
    stage.store.create("rm-9", job.kind, "again", TrainRequest.model_validate(job.request))
    again = JobFolder(stage.settings.reward_models_dir / "rm-9")
    with again.created():
        for name in ("job.json", "pairs.jsonl", "score_items.jsonl"):
            (again.path / name).write_bytes((trained.path / name).read_bytes())
        again.model_path.mkdir()
        (again.model_path / "left over.txt").write_text("half", encoding="utf-8")
    drain(stage.settings)
    assert (again.model_path / "model.safetensors").read_bytes() == weights
    assert not (again.model_path / "left over.txt").exists()
