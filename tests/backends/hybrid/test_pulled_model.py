"""A reward model from the stand-in of Stash, by a signed URL or as a stream, into the library."""

import io
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest
from support.both_sides import BothSides, talk
from support.staging import write_checkpoint
from support.stash_calls import trained

from stash_mcp.backends.base import RunOrder
from stash_mcp.checkpoints import pack
from stash_mcp.errors import CheckpointError, StashAnswerError, StashNotReadyError
from stash_mcp.stash.sent import Training


def archive(folder: Path) -> bytes:
    write_checkpoint(folder / "model")
    pack(folder / "model", folder / "model.tar.gz")
    return (folder / "model.tar.gz").read_bytes()


@pytest.fixture
def model_id(sides: BothSides, tmp_path: Path) -> str:
    """A trained model of Stash with its three conversations."""
    data = archive(tmp_path / "made")
    sides.stash.storage.data = sides.stash.world.weights = data
    with sides.client() as client:
        return trained(client)


def leftovers(sides: BothSides) -> list[str]:
    folder = sides.stage.settings.reward_models_dir
    return sorted(path.name for path in folder.iterdir()) if folder.exists() else []


def downloads(sides: BothSides) -> list[Path]:
    return list((sides.stage.settings.home / "downloads").iterdir())


def flipped(data: bytes) -> bytes:
    """One bit of the checksum, which stands before the four bytes of the size."""
    return data[:-8] + bytes([data[-8] ^ 1]) + data[-7:]


@pytest.mark.parametrize("streams", [False, True])
def test_it_comes_with_its_conversations_and_can_be_run(
    sides: BothSides, model_id: str, streams: bool
) -> None:
    sides.stash.world.streams_weights = streams
    sides.import_there(talk("another"))
    report = sides.pull(reward_model=f"stash:{model_id}")
    assert (report.traces.new, report.annotations.new) == (3, 3)
    [model] = sides.backend.list_reward_models()
    assert model.id == report.reward_model_id
    assert (model.imported_from, model.trace_count) == (f"stash:{model_id}", 3)
    assert (model.name, model.base_model, model.metrics.train_pairs) == (
        "tone",
        "Qwen/Qwen3-0.6B",
        2,
    )
    order = RunOrder(reward_model_id=model.id, task_model="openai/small", max_metric_calls=60)
    run = sides.backend.start_run(order).run
    assert run.plan.examples == 3


def test_a_second_pull_fetches_no_second_copy(sides: BothSides, model_id: str) -> None:
    first = sides.pull(reward_model=model_id)
    asked = len(sides.stash.storage.seen)
    assert sides.pull(reward_model=model_id).reward_model_id == first.reward_model_id
    assert len(sides.stash.storage.seen) == asked
    assert len(sides.backend.list_reward_models()) == 1
    assert list((sides.stage.settings.home / "downloads").glob("*.tar.gz")) == []


def test_a_download_that_broke_off_is_carried_on(sides: BothSides, model_id: str) -> None:
    sides.stash.storage.cuts = [100]
    assert sides.pull(reward_model=model_id).reward_model_id
    ranges = [headers.get("range") for _, headers in sides.stash.storage.seen]
    assert ranges == [None, "bytes=100-"]


def test_one_that_is_not_trained_is_refused_before_anything_comes(sides: BothSides) -> None:
    [trace] = sides.import_there(talk("a"))
    sides.stash.world.polls = 0
    with sides.client() as client:
        model = client.train(Training(name="tone", trace_ids=(trace,)))
    with pytest.raises(StashNotReadyError, match="is queued"):
        sides.pull(reward_model=model.id)
    assert sides.backend.list_traces(limit=1, offset=0).total == 0


def test_a_dry_run_fetches_no_weights(sides: BothSides, model_id: str) -> None:
    assert sides.pull(reward_model=model_id, dry_run=True).reward_model_id is None
    assert sides.stash.storage.seen == []


@pytest.mark.parametrize("name", ["../outside.json", "/outside.json", "reward-model/x.bin"])
def test_an_unsafe_archive_leaves_no_model(
    sides: BothSides, model_id: str, tmp_path: Path, name: str
) -> None:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
        tar.addfile(tarfile.TarInfo(name), io.BytesIO())
    sides.stash.storage.data = buffer.getvalue()
    with pytest.raises(CheckpointError):
        sides.pull(reward_model=model_id)
    assert (leftovers(sides), sides.backend.list_reward_models()) == ([], [])
    assert not list(tmp_path.rglob("outside.json"))


def test_what_is_no_archive_can_be_fetched_again(
    sides: BothSides, model_id: str, tmp_path: Path
) -> None:
    good = sides.stash.storage.data
    sides.stash.storage.data = good[: len(good) // 2]
    with pytest.raises(CheckpointError):
        sides.pull(reward_model=model_id)
    sides.stash.storage.data = b"no archive"
    with pytest.raises(StashAnswerError):
        sides.pull(reward_model=model_id)
    sides.stash.storage.data = good
    assert sides.pull(reward_model=model_id).reward_model_id


def test_a_model_that_was_spoilt_here_is_fetched_again(sides: BothSides, model_id: str) -> None:
    local = sides.pull(reward_model=model_id).reward_model_id
    (sides.stage.settings.reward_models_dir / local / "model" / "config.json").unlink()
    assert sides.pull(reward_model=model_id).reward_model_id == local
    assert len(sides.backend.list_reward_models()) == 1


@pytest.mark.parametrize("streams", [False, True])
@pytest.mark.parametrize(
    "spoil",
    [lambda data: data[:-20], lambda data: data[:-1], lambda data: data + b"x", flipped],
    ids=["cut", "cut by one", "longer", "bent"],
)
def test_a_damaged_archive_is_dropped_and_the_next_pull_fetches_another(
    sides: BothSides, model_id: str, streams: bool, spoil: Callable[[bytes], bytes]
) -> None:
    world, storage = sides.stash.world, sides.stash.storage
    world.streams_weights = streams
    good = storage.data
    world.weights = storage.data = spoil(good)
    with pytest.raises(CheckpointError) as caught:
        sides.pull(reward_model=model_id)
    assert f"The archive of the reward model stash:{model_id} is not a" in caught.value.problem
    assert "is damaged: fetch it again with another pull" in caught.value.fix
    assert (leftovers(sides), sides.backend.list_reward_models()) == ([], [])
    assert [path.name for path in downloads(sides) if path.suffix != ".lock"] == []
    world.weights = storage.data = good
    assert sides.pull(reward_model=model_id).reward_model_id


@pytest.mark.parametrize(
    ("file", "content", "said"),
    [
        ("tokenizer_config.json", '{"stash_input_version": 4}', "stash_input_version 4, which is"),
        ("tokenizer_config.json", '{"truncation_side": "right"}', "truncation_side 'right'"),
        ("reward_stats.json", "{}", "reward_stats.json of stash:"),
        ("config.json", "[]", "config.json of stash:"),
        ("pytorch_model.bin", "", "which can run code"),
    ],
)
def test_what_is_wrong_in_a_pulled_model_is_told_of_the_model_and_of_no_folder(
    sides: BothSides, model_id: str, tmp_path: Path, file: str, content: str, said: str
) -> None:
    (tmp_path / "made" / "model" / file).write_text(content, encoding="utf-8")
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
        tar.add(tmp_path / "made" / "model", "reward-model")
    sides.stash.storage.data = buffer.getvalue()
    with pytest.raises(CheckpointError) as caught:
        sides.pull(reward_model=model_id)
    assert said in caught.value.problem
    assert f"stash:{model_id}" in caught.value.problem
    assert str(tmp_path) not in caught.value.problem
    assert leftovers(sides) == []
