"""Trainings through the local backend, up to the queue."""

import json
import os
from pathlib import Path

import pytest
from support.staging import START, Stage, conversation, jsonl

from stash_mcp.backends.base import TrainOrder
from stash_mcp.errors import NotFoundError, PairsError
from stash_mcp.models import JobStatus, RewardModel
from stash_mcp.runs.folder import JobFolder


def train(stage: Stage, **order: object) -> RewardModel:
    return stage.backend.train_reward_model(TrainOrder.model_validate(order))


def folder(stage: Stage, model: RewardModel) -> JobFolder:
    return JobFolder(stage.settings.reward_models_dir / model.id)


def flag(stage: Stage, *trace_ids: str) -> None:
    for trace_id in trace_ids:
        for annotation in stage.backend.get_trace(trace_id).annotations:
            stage.backend.flag_annotation(annotation.id, "wrong", flagged=True)


def test_a_training_is_queued_with_its_pairs_and_all_conversations_to_score(stage: Stage) -> None:
    stage.conversations(6)
    stage.backend.import_traces(jsonl([conversation("z-unrated")]))
    model = train(stage, name="mine", epochs=2, learning_rate=0.5)
    assert (model.status, model.name, model.epochs) == (JobStatus.QUEUED, "mine", 2)
    assert (model.num_pairs, model.trace_count, model.metrics) == (9, 7, None)
    assert (model.created_at, model.started_at) == (START, None)
    assert len(folder(stage, model).pairs()) == 9
    scored = [trace_id for trace_id, _ in folder(stage, model).score_items()]
    assert scored == [*(f"c-{number:02}" for number in range(6)), "z-unrated"]
    job = json.loads((folder(stage, model).path / "job.json").read_bytes())
    assert (job["kind"], job["epochs"], job["learning_rate"]) == ("train", 2, 0.5)


def test_a_training_without_a_name_is_called_by_its_id(stage: Stage) -> None:
    stage.conversations()
    model = train(stage)
    assert model.name == model.id == "rm-1"


def test_conversations_are_chosen_by_id_and_by_pattern(stage: Stage) -> None:
    stage.conversations(12)
    model = train(stage, trace_ids=["c-0[0-3]", "c-11"])
    assert (model.trace_count, model.num_pairs) == (5, 2 * 3)
    with pytest.raises(NotFoundError, match="no trace 'x-"):
        train(stage, trace_ids=["c-*", "x-*"])


def test_pairs_are_capped(stage: Stage) -> None:
    stage.conversations(12)
    assert train(stage).num_pairs == 36
    assert train(stage, max_pairs=5).num_pairs == 5


def test_flagged_annotations_leave_the_training(stage: Stage) -> None:
    stage.conversations(12)
    flag(stage, "c-00", "c-02", "c-01")
    model = train(stage)
    assert model.num_pairs == 4 * 5
    ids = {pair.chosen_trace_id for pair in folder(stage, model).pairs()}
    assert ids == {"c-04", "c-06", "c-08", "c-10"}


def test_all_good_ones_flagged_is_too_few_pairs_and_says_so(stage: Stage) -> None:
    stage.conversations(4)
    flag(stage, "c-00", "c-02")
    with pytest.raises(PairsError, match="2 flagged as wrong and left out"):
        train(stage)
    assert stage.backend.list_reward_models() == []
    assert not stage.settings.reward_models_dir.exists()


def test_a_folder_of_a_base_model_becomes_absolute_and_a_hubs_name_stays(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    stage.conversations()
    base = stage.settings.project_dir / "models" / "base"
    base.mkdir(parents=True)
    assert train(stage, base_model=os.path.join("models", "base")).base_model == str(base)
    assert train(stage, base_model=str(base)).base_model == str(base)
    monkeypatch.setenv("HOME", str(stage.settings.project_dir))
    monkeypatch.setenv("USERPROFILE", str(stage.settings.project_dir))
    assert train(stage, base_model="~/models/base").base_model == str(base)
    assert train(stage, base_model="Qwen/Qwen3-0.6B").base_model == "Qwen/Qwen3-0.6B"


def test_reward_models_are_listed_newest_first_and_found_by_id(stage: Stage) -> None:
    stage.conversations()
    first, second = train(stage), train(stage, name="again")
    assert [model.id for model in stage.backend.list_reward_models()] == [second.id, first.id]
    assert stage.backend.get_reward_model(second.id) == second
    with pytest.raises(NotFoundError, match="no reward model 'rm-9'"):
        stage.backend.get_reward_model("rm-9")


def test_a_training_under_way_shows_its_progress(stage: Stage) -> None:
    stage.conversations()
    model = train(stage)
    stage.begin()
    stage.report(model.id, phase="training", done=3, total=9, estimate_seconds=12.0)
    shown = stage.backend.get_reward_model(model.id)
    assert (shown.status, shown.started_at) == (JobStatus.RUNNING, START)
    assert (shown.progress.done, shown.progress.estimate_seconds) == (3, 12.0)
