"""What macOS, Windows and containers do differently, simulated: none of it runs on them here."""

import errno
import os
import time
import unicodedata
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from stash_mcp.errors import InstallError, NotWritableError
from stash_mcp.skills import place as places
from stash_mcp.skills.history import file_state, find, uninstall
from stash_mcp.skills.targets import Target

# Access denied, sharing violation, lock violation.
IN_USE = [5, 32, 33]
LONGEST_WAIT_SECONDS = 3.0
MOST_ATTEMPTS = 50


class Busy:
    """An `os` function that Windows refuses so many times for the files of the skill."""

    def __init__(
        self, monkeypatch: pytest.MonkeyPatch, function: str, code: int, times: int
    ) -> None:
        self.refused = 0
        self.waited = 0.0
        real: Callable[..., object] = getattr(os, function)

        def busy(*paths: Any, **options: Any) -> object:
            if ".claude" in str(paths[-1]) and self.refused < times:
                self.refused += 1
                error = PermissionError(errno.EACCES, "The process cannot access the file")
                error.winerror = code  # type: ignore[attr-defined, unused-ignore]
                raise error
            return real(*paths, **options)

        def sleep(seconds: float) -> None:
            self.waited += seconds

        monkeypatch.setattr(os, function, busy)
        monkeypatch.setattr(time, "sleep", sleep)


def take_away(bench: Any) -> None:
    uninstall(
        find(bench.manifest, "refund-answers"),
        manifest=bench.manifest,
        backups_dir=bench.backups_dir,
        force=False,
        now=bench.manifest.all()[0].installed_at,
    )


# --- Windows: files that are in use ---


@pytest.mark.parametrize("code", IN_USE)
@pytest.mark.parametrize("before", ["nothing", "ours"])
def test_a_replacement_that_is_refused_for_a_moment_is_done(
    bench, make_text, monkeypatch, code: int, before: str
) -> None:
    if before == "ours":
        bench.install()
    busy = Busy(monkeypatch, "replace", code, times=4)
    bench.install(make_text(body="Newer."))
    assert busy.refused == 4
    assert bench.file.read_text() == make_text(body="Newer.")
    assert file_state(find(bench.manifest, "refund-answers")) == "current"


@pytest.mark.parametrize("code", IN_USE)
@pytest.mark.parametrize("before", ["nothing", "ours"])
def test_a_replacement_that_is_always_refused_ends_with_an_error_and_loses_nothing(
    bench, make_text, monkeypatch, code: int, before: str
) -> None:
    if before == "ours":
        bench.install()
    tree, rows = bench.tree(), bench.manifest.all()
    with monkeypatch.context() as refusing:
        busy = Busy(refusing, "replace", code, times=1_000_000)
        with pytest.raises(NotWritableError) as caught:
            bench.install(make_text(body="Newer."))
    assert caught.value.fix
    assert 1 < busy.refused <= MOST_ATTEMPTS
    assert 0 < busy.waited <= LONGEST_WAIT_SECONDS
    assert (bench.tree(), bench.manifest.all()) == (tree, rows)
    assert bench.install(make_text(body="Newest.")).action in ("created", "replaced")


@pytest.mark.parametrize("code", IN_USE)
def test_a_file_in_use_is_taken_away_when_it_is_free_and_else_stays(
    bench, monkeypatch, code: int
) -> None:
    bench.install()
    with monkeypatch.context() as refusing:
        Busy(refusing, "unlink", code, times=1_000_000)
        with pytest.raises(NotWritableError):
            take_away(bench)
    assert bench.file.exists()
    assert file_state(find(bench.manifest, "refund-answers")) == "current"
    busy = Busy(monkeypatch, "unlink", code, times=4)
    take_away(bench)
    assert busy.refused == 4
    assert not bench.file.parent.exists()


def test_another_refusal_is_not_waited_for(bench, make_text, monkeypatch) -> None:
    bench.install()
    busy = Busy(monkeypatch, "replace", 1, times=1_000_000)
    with pytest.raises(NotWritableError):
        bench.install(make_text(body="Newer."))
    assert busy.waited == 0


# --- Windows: what its `os` lacks ---


def test_nothing_needs_what_only_posix_has(bench, make_text, monkeypatch) -> None:
    for name in ("fchmod", "O_DIRECTORY", "O_NOFOLLOW", "geteuid", "getuid", "fork", "link"):
        monkeypatch.delattr(os, name, raising=False)
    real, opened = os.open, []

    def no_folders(path: Any, *rest: Any, **options: Any) -> int:
        if os.path.isdir(path) and "dir_fd" not in options:
            opened.append(path)
            raise PermissionError(errno.EACCES, "a folder cannot be opened")
        return real(path, *rest, **options)

    for body in ("One.", "Two."):
        bench.install(make_text(body=body))
    with monkeypatch.context() as windows:
        windows.setattr(os, "open", no_folders)
        windows.setattr("shutil._use_fd_functions", False)
        bench.install(make_text(body="Three."))
        take_away(bench)
    assert opened == []
    assert not bench.file.parent.exists()


# --- macOS and Windows: one name in several spellings ---


@pytest.fixture
def insensitive(monkeypatch: pytest.MonkeyPatch) -> None:
    """A file system that finds a name in any case."""
    real = os.lstat

    def lstat(path: Any, **options: Any) -> os.stat_result:
        try:
            return real(path, **options)
        except FileNotFoundError:
            for other in Path(path).parent.iterdir():
                if other.name.casefold() == Path(path).name.casefold():
                    return real(other, **options)
            raise

    monkeypatch.setattr(Path, "lstat", lambda self: lstat(self))


def names(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir()]


@pytest.mark.usefixtures("insensitive")
@pytest.mark.parametrize("force", [False, True])
def test_a_skill_that_only_the_case_tells_apart_is_not_written_into(bench, force: bool) -> None:
    theirs = bench.skills_dir / "Refund-Answers" / "SKILL.md"
    theirs.parent.mkdir(parents=True)
    theirs.write_text("theirs")
    with pytest.raises(InstallError, match="same name"):
        bench.install(force=force)
    assert theirs.read_text() == "theirs"
    assert names(bench.skills_dir) == ["Refund-Answers"]


@pytest.mark.usefixtures("insensitive")
def test_a_skill_file_that_only_the_case_tells_apart_is_not_replaced(bench) -> None:
    bench.file.parent.mkdir(parents=True)
    (bench.file.parent / "Skill.md").write_text("theirs")
    with pytest.raises(InstallError, match="same name"):
        bench.install(force=True)
    assert names(bench.file.parent) == ["Skill.md"]


@pytest.mark.parametrize(
    ("spelled", "asked"),
    [
        ("Café", unicodedata.normalize("NFD", "Café")),
        (unicodedata.normalize("NFD", "Café"), "Café"),
        ("Shop", "shop"),
    ],
)
def test_a_folder_that_is_named_in_another_spelling_is_the_same_place(
    bench, make_text, monkeypatch, tmp_path: Path, spelled: str, asked: str
) -> None:
    def same(one: Path, other: Path) -> bool:
        return places._folded(str(one)) == places._folded(str(other))

    monkeypatch.setattr(places, "_TAKES_OTHER_SPELLINGS", True)
    monkeypatch.setattr(os.path, "samefile", same)
    (tmp_path / spelled / "skills").mkdir(parents=True)
    for body, name in (("One.", spelled), ("Two.", asked)):
        target = Target("claude-code", "user", tmp_path / name / "skills")
        bench.install(make_text(body=body), target=target)
    file = tmp_path / spelled / "skills" / "refund-answers" / "SKILL.md"
    assert file.read_text() == make_text(body="Two.")
    assert [(row.path, row.version) for row in bench.manifest.all()] == [
        (str(file), 1),
        (str(file), 2),
    ]
    assert not (tmp_path / asked).exists()
