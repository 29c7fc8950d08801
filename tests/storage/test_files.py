"""Files: whole or absent, private, UTF-8, and errors in our words."""

import errno
import os
import stat
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from stash_mcp.errors import DiskFullError, NotWritableError, StorageError
from stash_mcp.models import Message
from stash_mcp.storage import files
from stash_mcp.storage.files import (
    jsonl_lines,
    os_errors,
    private_dir,
    read_text,
    replace,
    try_lock,
    write_atomic,
    write_json,
    write_jsonl,
)

posix_only = pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such modes")


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def names_in(folder: Path) -> list[str]:
    return sorted(entry.name for entry in folder.iterdir())


def test_a_file_is_written_as_utf8_with_lf(tmp_path: Path) -> None:
    write_atomic(tmp_path / "a", "Grüße\n\u2028")
    assert (tmp_path / "a").read_bytes() == "Grüße\n\u2028".encode()


def test_a_file_is_replaced_and_nothing_is_left_beside_it(tmp_path: Path) -> None:
    write_atomic(tmp_path / "a", "old")
    write_atomic(tmp_path / "a", b"new")
    assert names_in(tmp_path) == ["a"]
    assert read_text(tmp_path / "a") == "new"


def test_the_temporary_file_may_stand_in_another_folder(tmp_path: Path) -> None:
    (tmp_path / "staging").mkdir()
    (tmp_path / "watched").mkdir()
    write_atomic(tmp_path / "watched" / "a", "x", staging=tmp_path / "staging")
    assert names_in(tmp_path / "watched") == ["a"]
    assert names_in(tmp_path / "staging") == []


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    def rows() -> Iterator[str]:
        yield "half"
        raise RuntimeError("the source broke")

    write_atomic(tmp_path / "a", "old")
    with pytest.raises(RuntimeError):
        write_atomic(tmp_path / "a", rows())
    assert names_in(tmp_path) == ["a"]
    assert read_text(tmp_path / "a") == "old"


@posix_only
def test_files_and_folders_are_private(tmp_path: Path) -> None:
    private_dir(tmp_path / "a" / "b" / "c")
    write_atomic(tmp_path / "a" / "f", "x")
    assert mode_of(tmp_path / "a" / "f") == 0o600
    assert {mode_of(tmp_path / part) for part in ("a", "a/b", "a/b/c")} == {0o700}


def test_making_a_folder_again_changes_nothing(tmp_path: Path) -> None:
    private_dir(tmp_path / "a")
    write_atomic(tmp_path / "a" / "f", "x")
    assert private_dir(tmp_path / "a") == tmp_path / "a"
    assert names_in(tmp_path / "a") == ["f"]


def test_a_file_where_a_folder_should_be_is_a_storage_error(tmp_path: Path) -> None:
    write_atomic(tmp_path / "a", "x")
    with pytest.raises(StorageError, match="Could not make the folder"):
        private_dir(tmp_path / "a" / "b")


def test_writing_into_a_missing_folder_is_a_storage_error(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="Could not write"):
        write_atomic(tmp_path / "missing" / "a", "x")


@pytest.mark.parametrize(
    ("number", "kind"),
    [
        (errno.ENOSPC, DiskFullError),
        (errno.EACCES, NotWritableError),
        (errno.EROFS, NotWritableError),
        (errno.EIO, StorageError),
    ],
)
def test_errors_of_the_system_are_named_in_our_words(number: int, kind: type[StorageError]) -> None:
    with pytest.raises(StorageError) as caught, os_errors("write", Path("a")):
        raise OSError(number, os.strerror(number))
    assert type(caught.value) is kind
    assert caught.value.problem == f"Could not write a: {os.strerror(number)}."


@pytest.mark.skipif(
    sys.platform == "win32" or os.geteuid() == 0, reason="nothing is read-only to this user"
)
def test_a_read_only_folder_is_named(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(NotWritableError):
        write_atomic(tmp_path / "a", "x")


def test_a_target_in_use_on_windows_is_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, attempts = os.replace, []

    def refused_twice(source: Path, target: Path) -> None:
        attempts.append(target)
        if len(attempts) < 3:
            error = PermissionError(errno.EACCES, "in use")
            error.winerror = 32  # type: ignore[attr-defined, unused-ignore]
            raise error
        real(source, target)

    monkeypatch.setattr(os, "replace", refused_twice)
    monkeypatch.setattr(files, "_REPLACE_PAUSE_SECONDS", 0)
    write_atomic(tmp_path / "a", "x")
    assert len(attempts) == 3
    assert read_text(tmp_path / "a") == "x"


def test_another_refusal_of_a_replacement_is_not_tried_again(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        replace(tmp_path / "missing", tmp_path / "a")


def test_text_that_is_not_utf8_is_a_storage_error(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"ab\xff")
    with pytest.raises(StorageError, match="not UTF-8 text: byte 2 is 0xff"):
        read_text(tmp_path / "a")


def test_a_missing_file_is_a_storage_error(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="Could not read"):
        read_text(tmp_path / "missing")


def test_jsonl_is_one_object_a_line_and_read_back_by_lf_alone(tmp_path: Path) -> None:
    rows = [Message(role="user", content="one\u2028two\u0085\r\n"), Message(role="a", content="")]
    write_jsonl(tmp_path / "a", rows)
    lines = list(jsonl_lines(read_text(tmp_path / "a")))
    assert [number for number, _ in lines] == [1, 2]
    assert [Message.model_validate_json(line) for _, line in lines] == rows


def test_blank_lines_are_skipped_and_counted() -> None:
    assert list(jsonl_lines("a\n\n \nb")) == [(1, "a"), (4, "b")]


def test_json_is_readable_and_ends_with_a_line_end(tmp_path: Path) -> None:
    write_json(tmp_path / "a", {"name": "Zoë"})
    assert read_text(tmp_path / "a") == '{\n  "name": "Zoë"\n}\n'


def test_a_lock_is_held_by_one_at_a_time(tmp_path: Path) -> None:
    with try_lock(tmp_path / "locks" / "a.lock") as first:
        with try_lock(tmp_path / "locks" / "a.lock") as second:
            assert (first, second) == (True, False)
        # The one that did not get it has not released it either.
        with try_lock(tmp_path / "locks" / "a.lock") as third:
            assert not third
    with try_lock(tmp_path / "locks" / "a.lock") as again:
        assert again


@pytest.mark.skipif(sys.platform == "win32", reason="has no modes")
def test_a_lock_file_is_private_whatever_the_umask_is(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        with try_lock(tmp_path / "a.lock") as ours:
            assert ours
            assert stat.S_IMODE((tmp_path / "a.lock").stat().st_mode) == 0o600
    finally:
        os.umask(before)
