"""A reward model's folder and its archive, made by hand: no model is loaded here."""

import gzip
import io
import json
import subprocess
import sys
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from stash_mcp.checkpoints import (
    RewardStats,
    pack,
    staged_folder,
    unpack,
    verify_checkpoint,
)
from stash_mcp.errors import CheckpointError, StorageError

DATA = bytes(8)
TENSORS = {"score.weight": {"dtype": "F32", "shape": [2], "data_offsets": [0, len(DATA)]}}


def safetensors(header: object, data: bytes = DATA) -> bytes:
    text = json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + data


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    folder = tmp_path / "checkpoint"
    folder.mkdir()
    write(folder, "config.json", {"model_type": "bert", "id2label": {"0": "LABEL_0"}})
    write(folder, "tokenizer_config.json", {"truncation_side": "left"})
    write(folder, "tokenizer.json", {})
    write(folder, "reward_stats.json", {"mean": -0.5, "std": 2})
    (folder / "model.safetensors").write_bytes(safetensors(TENSORS))
    return folder


def write(folder: Path, name: str, value: object) -> None:
    (folder / name).write_text(json.dumps(value), encoding="utf-8")


def change(folder: Path, name: str, **values: object) -> None:
    written = json.loads((folder / name).read_text(encoding="utf-8"))
    write(folder, name, written | values)


def refusal(folder: Path) -> CheckpointError:
    with pytest.raises(CheckpointError) as caught:
        verify_checkpoint(folder)
    assert caught.value.fix.endswith(".")
    return caught.value


# --- the folder ---


def test_a_whole_checkpoint_gives_its_calibration(checkpoint: Path) -> None:
    assert verify_checkpoint(checkpoint) == RewardStats(mean=-0.5, std=2.0)


def test_more_keys_beside_the_calibration_keep_their_place(checkpoint: Path) -> None:
    change(checkpoint, "reward_stats.json", n=12)

    assert verify_checkpoint(checkpoint).std == 2.0


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    assert str(tmp_path / "gone") in refusal(tmp_path / "gone").problem


@pytest.mark.parametrize("name", ["config.json", "model.safetensors", "tokenizer_config.json"])
def test_a_missing_file_is_named(checkpoint: Path, name: str) -> None:
    (checkpoint / name).unlink()

    assert f"has no {name}" in refusal(checkpoint).problem


def test_a_tokenizer_without_vocabulary_is_refused(checkpoint: Path) -> None:
    (checkpoint / "tokenizer.json").unlink()

    assert "vocabulary" in refusal(checkpoint).problem


def test_another_form_of_vocabulary_is_taken(checkpoint: Path) -> None:
    (checkpoint / "tokenizer.json").rename(checkpoint / "vocab.txt")

    assert verify_checkpoint(checkpoint).std == 2.0


def test_a_checkpoint_without_calibration_says_to_retrain(checkpoint: Path) -> None:
    (checkpoint / "reward_stats.json").unlink()

    error = refusal(checkpoint)

    assert "trained before calibration" in error.problem
    assert error.fix == "Retrain it."


@pytest.mark.parametrize(
    "stats",
    [
        '{"mean": 0}',
        '{"std": 1}',
        '{"mean": "0", "std": 1}',
        '{"mean": true, "std": 1}',
        '{"mean": null, "std": 1}',
        '{"mean": NaN, "std": 1}',
        '{"mean": 0, "std": NaN}',
        '{"mean": 0, "std": Infinity}',
        '{"mean": 0, "std": 1' + 400 * "0" + "}",
        '{"mean": 0, "std": 0}',
        '{"mean": 0, "std": -1}',
        "[0, 1]",
        '{"mean": 0,',
        "[" * 100_000,
        "",
        "\xff",
    ],
)
def test_a_calibration_that_is_no_numbers_is_refused(checkpoint: Path, stats: str) -> None:
    (checkpoint / "reward_stats.json").write_bytes(stats.encode("latin-1"))

    assert "reward_stats.json" in refusal(checkpoint).problem


@pytest.mark.parametrize(
    "name", ["pytorch_model.bin", "training.pt", "a.pth", "b.pkl", "c.ckpt", "D.BIN", "e.pickle"]
)
def test_a_pickle_is_refused(checkpoint: Path, name: str) -> None:
    (checkpoint / name).write_bytes(b"")

    assert "can run code" in refusal(checkpoint).problem


def test_a_pickle_in_a_folder_inside_is_refused(checkpoint: Path) -> None:
    (checkpoint / "deep").mkdir()
    (checkpoint / "deep" / "optimizer.pt").write_bytes(b"")

    assert "deep/optimizer.pt" in refusal(checkpoint).problem


def test_code_files_are_refused(checkpoint: Path) -> None:
    (checkpoint / "modeling_own.py").write_text("")

    assert "its own code, modeling_own.py" in refusal(checkpoint).problem


@pytest.mark.parametrize("name", ["run.sh", "model.dll", "noname", "adapter_config.json"])
def test_files_of_no_known_kind_are_refused(checkpoint: Path, name: str) -> None:
    (checkpoint / name).write_text("{}")

    assert f"holds {name}, which is no part" in refusal(checkpoint).problem


@pytest.mark.parametrize("name", ["vocab.txt", "chat_template.jinja", "spiece.model", "README.md"])
def test_files_that_hold_data_are_taken(checkpoint: Path, name: str) -> None:
    (checkpoint / name).write_text("")

    assert verify_checkpoint(checkpoint).std == 2.0


@pytest.mark.parametrize("name", ["config.json", "tokenizer_config.json"])
@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("auto_map", {"AutoModel": "own.Model"}),
        ("custom_pipelines", {"x": {}}),
        ("_attn_implementation", "somebody/kernel"),
        ("attn_implementation", {"text": "somebody/kernel"}),
    ],
)
def test_settings_that_fetch_code_are_refused(
    checkpoint: Path, name: str, key: str, value: object
) -> None:
    change(checkpoint, name, **{key: value})

    assert f"asks for code from outside ({key})" in refusal(checkpoint).problem


@pytest.mark.skipif(sys.platform == "win32", reason="links need a privilege there")
@pytest.mark.parametrize("target", ["/etc", "model.safetensors", "nowhere"])
def test_links_are_refused(checkpoint: Path, target: str) -> None:
    (checkpoint / "vocab.txt").symlink_to(target)

    assert "holds a link, vocab.txt" in refusal(checkpoint).problem


@pytest.mark.parametrize(
    ("version", "said"),
    [
        (2, "stash_input_version 2, which is known but not supported"),
        (7, "stash_input_version 7, which is unknown"),
        ("1", "stash_input_version '1', which is unknown"),
        (None, "stash_input_version None, which is unknown"),
        ([], "stash_input_version [], which is unknown"),
    ],
)
def test_another_input_version_is_refused_by_name(
    checkpoint: Path, version: object, said: str
) -> None:
    change(checkpoint, "tokenizer_config.json", stash_input_version=version)

    assert said in refusal(checkpoint).problem


def test_the_input_version_of_this_release_is_taken(checkpoint: Path) -> None:
    change(checkpoint, "tokenizer_config.json", stash_input_version=1, stash_rubric="Be kind.")

    assert verify_checkpoint(checkpoint).std == 2.0


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ({"id2label": {"0": "a", "1": "b"}}, "has 2 labels"),
        ({"num_labels": 3}, "has 3 labels"),
        # What transformers takes where nothing is said.
        ({}, "has 2 labels"),
    ],
)
def test_a_model_of_more_labels_is_refused(
    checkpoint: Path, config: dict[str, Any], said: str
) -> None:
    write(checkpoint, "config.json", {"model_type": "bert"} | config)

    assert said in refusal(checkpoint).problem


def test_a_model_that_is_no_classifier_is_refused(checkpoint: Path) -> None:
    change(checkpoint, "config.json", architectures=["BertModel"])

    assert "is BertModel, which gives no reward" in refusal(checkpoint).problem


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "header's length"),
        (b"\x01", "header's length"),
        (b"garbage" * 10, "header's length"),
        (safetensors(TENSORS)[:20], "header's length"),
        ((2).to_bytes(8, "little") + b"{x", "header is not JSON"),
        (safetensors([1]), "header is not a JSON object"),
        (safetensors({}), "no tensor"),
        (safetensors({"__metadata__": {"format": "pt"}}), "no tensor"),
        (safetensors({"a": {"dtype": "F32"}}), "tensor wrongly"),
        (safetensors({"a": {**TENSORS["score.weight"], "data_offsets": [8, 0]}}), "tensor wrongly"),
        (safetensors(TENSORS, DATA[:-1]), "not as long as"),
        (safetensors(TENSORS, DATA + b"x"), "not as long as"),
    ],
)
def test_damaged_weights_are_refused(checkpoint: Path, content: bytes, said: str) -> None:
    (checkpoint / "model.safetensors").write_bytes(content)

    assert said in refusal(checkpoint).problem


# --- the archive ---


def test_an_archive_has_the_one_top_folder_and_comes_back_the_same(
    checkpoint: Path, tmp_path: Path
) -> None:
    archive = tmp_path / "out" / "model.tar.gz"

    pack(checkpoint, archive)
    folder = unpack(archive, tmp_path / "in" / "again")

    with tarfile.open(archive, "r:gz") as tar:
        assert {name.split("/")[0] for name in tar.getnames()} == {"reward-model"}
    assert contents(folder) == contents(checkpoint)


def test_the_same_files_give_the_same_archive(checkpoint: Path, tmp_path: Path) -> None:
    pack(checkpoint, tmp_path / "one.tar.gz")
    for path in checkpoint.iterdir():
        path.write_bytes(path.read_bytes())
    pack(checkpoint, tmp_path / "two.tar.gz")

    assert (tmp_path / "one.tar.gz").read_bytes() == (tmp_path / "two.tar.gz").read_bytes()


def test_no_archive_is_made_of_an_unsound_checkpoint(checkpoint: Path, tmp_path: Path) -> None:
    (checkpoint / "reward_stats.json").unlink()

    with pytest.raises(CheckpointError):
        pack(checkpoint, tmp_path / "model.tar.gz")

    assert not (tmp_path / "model.tar.gz").exists()


def test_a_failed_packing_leaves_the_archive_that_was_there(
    checkpoint: Path, tmp_path: Path
) -> None:
    archive = tmp_path / "model.tar.gz"
    archive.mkdir()

    with pytest.raises(StorageError):
        pack(checkpoint, archive)

    assert names(tmp_path) == {"checkpoint", "model.tar.gz"}


@pytest.mark.parametrize("top", ["reward-model", "model", "./reward-model"])
def test_any_one_top_folder_is_taken(checkpoint: Path, tmp_path: Path, top: str) -> None:
    archive = archive_of(tmp_path, [(f"{top}/{n}", d) for n, d in contents(checkpoint).items()])

    assert contents(unpack(archive, tmp_path / "into")) == contents(checkpoint)


def test_an_archive_made_by_tar_itself_is_taken(checkpoint: Path, tmp_path: Path) -> None:
    archive = tmp_path / "model.tar.gz"
    with tarfile.open(archive, "w:gz") as tar:
        tar.add(checkpoint, "reward-model")

    assert contents(unpack(archive, tmp_path / "into")) == contents(checkpoint)


def test_the_attribute_files_of_macos_are_left_out(checkpoint: Path, tmp_path: Path) -> None:
    files = [(f"m/{n}", d) for n, d in contents(checkpoint).items()]
    archive = archive_of(tmp_path, [("._m", b"x"), ("m/._config.json", b"x"), *files])

    assert contents(unpack(archive, tmp_path / "into")) == contents(checkpoint)


Damage = Callable[[tarfile.TarInfo], None]


def as_link(kind: bytes) -> Damage:
    def apply(info: tarfile.TarInfo) -> None:
        info.type, info.linkname, info.size = kind, "../../secret", 0

    return apply


@pytest.mark.parametrize(
    ("name", "damage", "said"),
    [
        ("/etc/config.json", None, "outside its folder"),
        ("../config.json", None, "outside its folder"),
        ("m/../../config.json", None, "outside its folder"),
        ("m/..\\config.json", None, "outside its folder"),
        ("C:/config.json", None, "outside its folder"),
        ("config.json", None, "outside any folder"),
        ("other/config.json", None, "more than one top folder: m, other"),
        ("m/config.json", None, "twice"),
        ("m/link.json", as_link(tarfile.SYMTYPE), "neither a plain file nor a folder"),
        ("m/link.json", as_link(tarfile.LNKTYPE), "neither a plain file nor a folder"),
        ("m/pipe.json", as_link(tarfile.FIFOTYPE), "neither a plain file nor a folder"),
        ("m/device.json", as_link(tarfile.CHRTYPE), "neither a plain file nor a folder"),
        ("m/run.py", None, "its own code"),
    ],
)
def test_an_unsafe_archive_is_refused_and_leaves_nothing(
    checkpoint: Path, tmp_path: Path, name: str, damage: Damage | None, said: str
) -> None:
    files = [(f"m/{n}", d) for n, d in contents(checkpoint).items()]
    archive = archive_of(tmp_path, [*files, (name, b"{}")], damage)

    with pytest.raises(CheckpointError, match=said):
        unpack(archive, tmp_path / "inside" / "into")

    assert not (tmp_path / "inside").exists()


def test_an_archive_that_unpacks_to_too_much_is_refused(checkpoint: Path, tmp_path: Path) -> None:
    archive = tmp_path / "model.tar.gz"
    pack(checkpoint, archive)
    size = sum(len(data) for data in contents(checkpoint).values())

    with pytest.raises(CheckpointError, match="holds more than"):
        unpack(archive, tmp_path / "into", max_bytes=size - 1)

    assert not (tmp_path / "into").exists()
    assert unpack(archive, tmp_path / "into", max_bytes=size).is_dir()


def test_an_archive_of_endless_files_is_refused(tmp_path: Path) -> None:
    archive = archive_of(tmp_path, [(f"m/{number}.json", b"") for number in range(300)])

    with pytest.raises(CheckpointError, match="holds more than"):
        unpack(archive, tmp_path / "into")


@pytest.mark.parametrize("keep", [0, 5, 200])
def test_a_truncated_archive_is_refused(checkpoint: Path, tmp_path: Path, keep: int) -> None:
    archive = tmp_path / "model.tar.gz"
    pack(checkpoint, archive)
    archive.write_bytes(archive.read_bytes()[:keep])

    with pytest.raises(CheckpointError, match="not a whole"):
        unpack(archive, tmp_path / "into")

    assert names(tmp_path) == {"checkpoint", "model.tar.gz"}


@pytest.mark.parametrize("content", [b"plain text", gzip.compress(b"no tar " * 100, mtime=0)])
def test_what_is_no_archive_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "model.tar.gz").write_bytes(content)

    with pytest.raises(CheckpointError, match="not a whole"):
        unpack(tmp_path / "model.tar.gz", tmp_path / "into")


def test_an_empty_archive_is_no_checkpoint(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="has no config"):
        unpack(archive_of(tmp_path, []), tmp_path / "into")


def test_a_missing_archive_is_named(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="no archive at"):
        unpack(tmp_path / "gone.tar.gz", tmp_path / "into")


def test_unpacking_overwrites_nothing(checkpoint: Path, tmp_path: Path) -> None:
    pack(checkpoint, tmp_path / "model.tar.gz")

    with pytest.raises(CheckpointError, match="something at"):
        unpack(tmp_path / "model.tar.gz", checkpoint)


# --- a folder whole or not at all ---


def test_a_staged_folder_replaces_what_was_there(tmp_path: Path) -> None:
    target = tmp_path / "model"
    target.mkdir()
    (target / "old").touch()

    with staged_folder(target) as folder:
        (folder / "new").touch()
        assert names(target) == {"old"}

    assert names(target) == {"new"}
    assert names(tmp_path) == {"model"}


def test_a_staged_folder_that_fails_keeps_what_was_there(tmp_path: Path) -> None:
    target = tmp_path / "model"
    target.mkdir()
    (target / "old").touch()

    with pytest.raises(OSError, match="no room"):
        write_and_fail(target)

    assert names(target) == {"old"}
    assert names(tmp_path) == {"model"}


def test_checkpoints_load_no_heavy_library() -> None:
    code = (
        "import sys, stash_mcp.checkpoints\n"
        "heavy = {'torch', 'transformers', 'safetensors', 'numpy'} & set(sys.modules)\n"
        "sys.exit(','.join(heavy) or None)"
    )

    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)

    assert (result.returncode, result.stderr) == (0, "")


def write_and_fail(target: Path) -> None:
    with staged_folder(target) as folder:
        (folder / "new").touch()
        raise OSError("no room")


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def archive_of(
    folder: Path, files: list[tuple[str, bytes]], damage_last: Damage | None = None
) -> Path:
    archive = folder / "made.tar.gz"
    with tarfile.open(archive, "w:gz") as tar:
        for number, (name, data) in enumerate(files, start=1):
            info = tarfile.TarInfo(name)
            info.size = len(data)
            if damage_last and number == len(files):
                damage_last(info)
            tar.addfile(info, io.BytesIO(data))
    return archive
