import json
from pathlib import Path

import pytest
from support.samples import example

from stash_mcp.errors import RunError
from stash_mcp.models import RunRequest
from stash_mcp.runs.folder import JobFolder
from stash_mcp.worker.fingerprint import check_fingerprint, checkpoint_digest


@pytest.fixture
def request_() -> RunRequest:
    return RunRequest(
        reward_model_id="rm-1", task_model="m", reflection_model="r", max_metric_calls=40
    )


@pytest.fixture
def folder(tmp_path: Path, request_: RunRequest) -> JobFolder:
    folder = JobFolder(tmp_path / "run-1")
    with folder.created():
        folder.create_run(request_, [example(1, "Be kind.")])
    return folder


def test_the_same_run_carries_on(folder: JobFolder, request_: RunRequest) -> None:
    check_fingerprint(folder, request_, "digest")
    check_fingerprint(folder, request_, "digest")
    assert folder.fingerprint_path.exists()


def test_another_reward_model_is_refused_with_both_values(
    folder: JobFolder, request_: RunRequest
) -> None:
    check_fingerprint(folder, request_, "digest-a")
    with pytest.raises(RunError, match=r"reward model was digest-a .* is digest-b now"):
        check_fingerprint(folder, request_, "digest-b")


def test_other_settings_are_refused(folder: JobFolder, request_: RunRequest) -> None:
    check_fingerprint(folder, request_, "digest")
    with pytest.raises(RunError, match="settings was"):
        check_fingerprint(folder, request_.model_copy(update={"random_seed": 9}), "digest")


def test_other_data_is_refused(folder: JobFolder, request_: RunRequest) -> None:
    check_fingerprint(folder, request_, "digest")
    folder.examples_path.write_text("{}\n", encoding="utf-8")
    with pytest.raises(RunError, match="its data was"):
        check_fingerprint(folder, request_, "digest")


def test_another_release_of_a_library_is_refused(folder: JobFolder, request_: RunRequest) -> None:
    check_fingerprint(folder, request_, "digest")
    then = json.loads(folder.fingerprint_path.read_text(encoding="utf-8"))
    then["version of gepa"] = "0.0.1"
    folder.fingerprint_path.write_text(json.dumps(then), encoding="utf-8")
    with pytest.raises(RunError, match=r"version of gepa was 0\.0\.1"):
        check_fingerprint(folder, request_, "digest")


def test_a_checkpoints_digest_is_of_names_and_contents(tmp_path: Path) -> None:
    digests = []
    for name, content in (("a", "1"), ("a", "1"), ("a", "2"), ("b", "1")):
        place = tmp_path / str(len(digests))
        place.mkdir()
        (place / name).write_text(content, encoding="utf-8")
        digests.append(checkpoint_digest(place))
    assert digests[0] == digests[1]
    assert len(set(digests)) == 3


def test_settings_that_an_earlier_version_stored_are_the_same(
    folder: JobFolder, request_: RunRequest
) -> None:
    check_fingerprint(folder, request_, "digest")
    then = json.loads(folder.fingerprint_path.read_text(encoding="utf-8"))
    settings = json.loads(then["settings"])
    settings["seed"] = settings.pop("random_seed")
    del settings["adopted"]
    then["settings"] = json.dumps(settings, sort_keys=True)
    folder.fingerprint_path.write_text(json.dumps(then), encoding="utf-8")
    check_fingerprint(folder, request_, "digest")
    with pytest.raises(RunError, match="settings was"):
        check_fingerprint(folder, request_.model_copy(update={"random_seed": 9}), "digest")
