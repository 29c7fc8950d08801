"""The job folder's files: names and shapes of the contract, private, whole or absent."""

import json
import os
import stat
import sys
from pathlib import Path

import pytest
from support.samples import example

from stash_mcp.errors import NotWritableError, RunError, StorageError
from stash_mcp.models import PreferencePair, RunRequest, TrainRequest
from stash_mcp.runs.folder import JobFolder

PAIRS = [
    PreferencePair(
        chosen="user: hi\n\nassistant: line\u2028separator",
        rejected="user: hi\n\nassistant: näh",
        chosen_trace_id="a",
        rejected_trace_id="b",
        granularity="step",
    )
] * 2
TRAINING = TrainRequest(base_model="some/base", epochs=3, trace_ids=("a", "b"), num_pairs=2)
RUN = RunRequest(
    reward_model_id="rm-1",
    task_model="openai/task",
    task_api_base="http://127.0.0.1:1/v1",
    reflection_model="openai/reflection",
    max_metric_calls=60,
)


@pytest.fixture
def folder(tmp_path: Path) -> JobFolder:
    return JobFolder(tmp_path / "jobs" / "job-1")


def job_json(folder: JobFolder) -> dict[str, object]:
    written: dict[str, object] = json.loads((folder.path / "job.json").read_bytes())
    return written


def names(folder: JobFolder) -> set[str]:
    return {path.name for path in folder.path.iterdir()}


def test_a_training_is_described_by_the_keys_of_the_contract(folder: JobFolder) -> None:
    with folder.created():
        folder.create_training(TRAINING, PAIRS)
        folder.write_score_items([("a", "user: hi"), ("b", "user: ho\u2028ho")])
    contract = {
        "kind": "train",
        "base_model": "some/base",
        "epochs": 3,
        "compute": "local",
        "artifact_key": None,
    }
    assert contract.items() <= job_json(folder).items()
    assert names(folder) == {"job.json", "pairs.jsonl", "score_items.jsonl"}
    [first, _] = (folder.path / "pairs.jsonl").read_text("utf-8").split("\n")[:2]
    assert json.loads(first)["chosen"] == PAIRS[0].chosen
    assert json.loads(first)["rejected"] == PAIRS[0].rejected
    items = (folder.path / "score_items.jsonl").read_text("utf-8").split("\n")
    assert [json.loads(line) for line in items[:-1]] == [
        {"trace_id": "a", "text": "user: hi"},
        {"trace_id": "b", "text": "user: ho\u2028ho"},
    ]


def test_a_run_is_described_by_the_keys_of_the_contract(folder: JobFolder) -> None:
    with folder.created():
        folder.create_run(RUN, [example(1, "Be kind.")])
    contract = {
        "kind": "gepa",
        "reward_model_key": "rm-1",
        "task_model": "openai/task",
        "task_api_base": "http://127.0.0.1:1/v1",
        "reflection_model": "openai/reflection",
        "max_metric_calls": 60,
    }
    assert contract.items() <= job_json(folder).items()
    assert names(folder) == {"job.json", "gepa_examples.jsonl"}
    [line, end] = (folder.path / "gepa_examples.jsonl").read_text("utf-8").split("\n")
    assert end == ""
    assert json.loads(line) == {
        "trace_id": "t01",
        "system": "You help.",
        "messages": [{"role": "user", "content": "Question 1: where is my parcel?"}],
        "feedback": ["Be kind."],
    }


def test_what_was_written_is_read_back(folder: JobFolder) -> None:
    with folder.created():
        folder.create_training(TRAINING, PAIRS)
        folder.create_run(RUN, [example(1), example(2, "Be kind.", system=None)])
        folder.write_score_items([("a", "x\u2028y"), ("b", "")])
    assert folder.pairs() == PAIRS
    assert folder.examples() == [example(1), example(2, "Be kind.", system=None)]
    assert folder.score_items() == [("a", "x\u2028y"), ("b", "")]


def test_scores_are_one_line_for_each_trace(folder: JobFolder) -> None:
    with folder.created():
        folder.write_scores([("a", -1.25), ("b", 0.5)])
    lines = (folder.path / "scores.jsonl").read_text("utf-8").splitlines()
    assert [json.loads(line) for line in lines] == [
        {"trace_id": "a", "score": -1.25},
        {"trace_id": "b", "score": 0.5},
    ]


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such modes")
def test_the_folder_and_its_files_are_private(folder: JobFolder) -> None:
    with folder.created():
        folder.create_training(TRAINING, PAIRS)
        folder.write_score_items([("a", "x")])
    assert stat.S_IMODE(folder.path.stat().st_mode) == 0o700
    assert stat.S_IMODE(folder.path.parent.stat().st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) for path in folder.path.iterdir()} == {0o600}


@pytest.mark.parametrize("error", [NotWritableError("No.", "Do."), KeyboardInterrupt()])
def test_a_folder_that_could_not_be_filled_leaves_nothing(
    folder: JobFolder, tmp_path: Path, error: BaseException
) -> None:
    def fill_and_fail() -> None:
        with folder.created():
            folder.create_training(TRAINING, PAIRS)
            raise error

    with pytest.raises(type(error)):
        fill_and_fail()
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_could_not_be_filled_leaves_its_neighbours(folder: JobFolder) -> None:
    def fill_and_fail() -> None:
        with folder.created():
            raise NotWritableError("No.", "Do.")

    other = JobFolder(folder.path.with_name("job-0"))
    with other.created():
        other.create_training(TRAINING, PAIRS)
    with pytest.raises(NotWritableError):
        fill_and_fail()
    assert other.pairs() == PAIRS
    assert not folder.path.exists()


@pytest.mark.parametrize("line", ["{", "[]", '{"chosen": "a"}'])
def test_a_damaged_line_is_named(folder: JobFolder, line: str) -> None:
    with folder.created():
        folder.create_training(TRAINING, PAIRS)
        folder.create_run(RUN, [example(1)])
        folder.write_score_items([("a", "x")])
    for name in ("pairs.jsonl", "gepa_examples.jsonl", "score_items.jsonl"):
        path = folder.path / name
        path.write_text(f"{path.read_text('utf-8')}{line}\n", encoding="utf-8")
    with pytest.raises(RunError, match=r"pairs\.jsonl is damaged in line 3"):
        folder.pairs()
    with pytest.raises(RunError, match=r"gepa_examples\.jsonl is damaged in line 2"):
        folder.examples()
    with pytest.raises(RunError, match=r"score_items\.jsonl is damaged in line 2"):
        folder.score_items()


def test_a_missing_file_and_one_that_is_no_text_are_named(folder: JobFolder) -> None:
    with folder.created():
        pass
    with pytest.raises(StorageError, match=r"pairs\.jsonl"):
        folder.pairs()
    (folder.path / "pairs.jsonl").write_bytes(b"\xff\n")
    with pytest.raises(StorageError, match=r"pairs\.jsonl is not UTF-8"):
        folder.pairs()


def test_the_end_of_the_log_is_its_last_2000_characters(folder: JobFolder) -> None:
    assert folder.end_of_log() == ""
    with folder.created():
        folder.log_path.write_bytes(b"\xff first\n" + "ü".encode() * 3000 + b" the reason\n")
    end = folder.end_of_log()
    assert len(end) == 2000
    assert end.endswith("ü the reason\n")
    assert "first" not in end
    assert os.fspath(folder.log_path).endswith("worker.log")
