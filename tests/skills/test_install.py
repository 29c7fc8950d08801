"""Installing: what is written, what is refused, and that a refusal changes nothing."""

import contextlib
import errno
import hashlib
import os
import sqlite3
import stat
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from stash_mcp.errors import (
    DiskFullError,
    InstallConflictError,
    InstallError,
    NotWritableError,
    SkillDocumentError,
    StorageError,
)
from stash_mcp.skills.targets import Target

MakeText = Callable[..., str]


@contextlib.contextmanager
def changes_nothing(bench):
    before = bench.tree(), bench.manifest.all()
    yield
    assert (bench.tree(), bench.manifest.all()) == before


def refuse_with(monkeypatch: pytest.MonkeyPatch, function: str, code: int) -> None:
    """Let `os.<function>` fail for the skills' folders, and work elsewhere."""
    real = getattr(os, function)

    def failing(*args, **kwargs):
        if function == "fsync" or any(".claude" in str(argument) for argument in args):
            raise OSError(code, os.strerror(code))
        return real(*args, **kwargs)

    monkeypatch.setattr(os, function, failing)


# --- what is written ---


def test_the_installed_file_is_the_text_byte_for_byte_and_is_recorded(bench) -> None:
    text = "---\nname: refund-answers\ndescription: Ü\n---\n\nZeile 😀\n\n```\na\n```"
    done = bench.install(text, candidate=4)
    assert bench.file.read_bytes() == text.encode()
    assert done.action == "created"
    assert done.backup is None
    assert done.installation == bench.manifest.latest(str(bench.file))
    assert done.installation.model_dump(exclude={"installed_at"}) == {
        "path": str(bench.file),
        "name": "refund-answers",
        "agent": "claude-code",
        "scope": "project",
        "run_id": "run-1",
        "candidate": 4,
        "sha256": hashlib.sha256(text.encode()).hexdigest(),
        "version": 1,
        "kind": "install",
    }


def test_nothing_but_the_skill_is_left_in_the_folders(bench) -> None:
    bench.install()
    bench.install(bench_text := bench.file.read_text() + " Always.")
    assert bench.file.read_text() == bench_text
    assert [Path(path).name for path in bench.tree()] == [
        ".claude", "skills", "refund-answers", "SKILL.md",
    ]  # fmt: skip


def test_the_same_text_again_writes_nothing(bench) -> None:
    first = bench.install()
    before = bench.file.stat()
    again = bench.install()
    after = bench.file.stat()
    assert again.action == "unchanged"
    assert again.installation == first.installation
    assert (after.st_mtime_ns, after.st_ino) == (before.st_mtime_ns, before.st_ino)
    assert len(bench.manifest.all()) == 1


def test_the_same_text_from_another_run_is_recorded_without_writing(bench) -> None:
    bench.install()
    before = bench.file.stat().st_mtime_ns
    assert bench.install(run_id="run-2").action == "unchanged"
    assert bench.file.stat().st_mtime_ns == before
    assert bench.manifest.latest(str(bench.file)).run_id == "run-2"


def test_a_file_that_holds_the_text_already_becomes_ours(bench, make_text: MakeText) -> None:
    bench.file.parent.mkdir(parents=True)
    bench.file.write_bytes(make_text().encode())
    assert bench.install().action == "unchanged"
    assert bench.install(make_text(body="Newer.")).action == "replaced"


def test_our_own_unedited_file_is_replaced_without_force_or_backup(
    bench, make_text: MakeText
) -> None:
    bench.install()
    done = bench.install(make_text(body="Be kinder."), candidate=2)
    assert (done.action, done.backup) == ("replaced", None)
    assert bench.file.read_text().endswith("Be kinder.")
    assert [row.candidate for row in bench.manifest.all()] == [1, 2]


def test_other_files_in_the_skills_folder_are_not_touched(bench, make_text: MakeText) -> None:
    bench.file.parent.mkdir(parents=True)
    notes = bench.file.parent / "reference" / "notes.md"
    notes.parent.mkdir()
    notes.write_text("mine")
    before = notes.stat()
    assert bench.install().action == "created"
    assert bench.install(make_text(body="Newer.")).action == "replaced"
    assert notes.read_text() == "mine"
    assert notes.stat() == before


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX modes")
def test_modes_are_what_the_umask_gives_and_an_existing_files_mode_stays(
    bench, make_text: MakeText
) -> None:
    old = os.umask(0o027)
    try:
        bench.install()
    finally:
        os.umask(old)
    assert stat.S_IMODE(bench.file.stat().st_mode) == 0o640
    assert stat.S_IMODE(bench.file.parent.stat().st_mode) == 0o750
    bench.file.chmod(0o604)
    bench.install(make_text(body="Newer."))
    assert stat.S_IMODE(bench.file.stat().st_mode) == 0o604


def test_the_staging_folder_is_beside_the_skills_folder_and_never_in_it(
    bench, monkeypatch: pytest.MonkeyPatch, make_text: MakeText
) -> None:
    moves: list[tuple[Path, Path]] = []
    real = os.replace

    def spy(source, target):
        moves.append((Path(source), Path(target)))
        real(source, target)

    monkeypatch.setattr(os, "replace", spy)
    bench.install()
    bench.install(make_text(body="Newer."))
    into_place = [move for move in moves if move[1] in (bench.file, bench.file.parent)]
    assert [target for _, target in into_place] == [bench.file.parent, bench.file]
    for source, target in moves:
        assert bench.skills_dir not in source.parents
        if target.is_relative_to(bench.backups_dir):
            continue
        assert bench.skills_dir.parent in source.parents


def test_a_linked_skills_folder_is_followed_and_staged_beside_its_real_place(bench) -> None:
    real = bench.settings.project_dir / ".agents" / "skills"
    real.mkdir(parents=True)
    bench.skills_dir.parent.mkdir()
    bench.skills_dir.symlink_to(real, target_is_directory=True)
    done = bench.install()
    assert Path(done.installation.path) == real / "refund-answers" / "SKILL.md"
    assert bench.file.read_text() == (real / "refund-answers" / "SKILL.md").read_text()
    assert [path.name for path in real.parent.iterdir()] == ["skills"]


# --- somebody's work ---


def test_a_file_that_we_did_not_write_is_kept_and_the_difference_shown(bench) -> None:
    bench.file.parent.mkdir(parents=True)
    bench.file.write_text("---\nname: refund-answers\ndescription: Mine.\n---\n\nBe kind.")
    with changes_nothing(bench), pytest.raises(InstallConflictError) as caught:
        bench.install()
    error = caught.value
    assert "was not written by stash-skills" in error.problem
    for choice in ("Keep it", "force", "skill_name"):
        assert choice in error.fix
    assert "-description: Mine.\n+description: Answer refund questions.\n" in error.diff
    assert error.diff.startswith(f"--- {bench.file}")


def test_a_file_that_was_edited_since_is_kept(bench, make_text: MakeText) -> None:
    bench.install()
    bench.file.write_text(make_text(body="Be kind.\n"))
    with (
        changes_nothing(bench),
        pytest.raises(InstallConflictError, match=r"edited since .* on 2026-03-01") as caught,
    ):
        bench.install(make_text(body="Newer."))
    assert "-Be kind.\n+Newer.\n\\ No newline at end of file\n" in caught.value.diff


def test_a_file_that_is_no_text_gets_a_conflict_too(bench) -> None:
    bench.file.parent.mkdir(parents=True)
    bench.file.write_bytes(b"\xff\xfe\x00")
    with changes_nothing(bench), pytest.raises(InstallConflictError):
        bench.install()
    bench.file.write_bytes(b"x" * 1_000_001)
    with changes_nothing(bench), pytest.raises(InstallConflictError) as caught:
        bench.install()
    assert "1,000,001 bytes" in caught.value.diff


def test_force_keeps_a_copy_outside_every_skills_folder_and_replaces(
    bench, make_text: MakeText
) -> None:
    bench.file.parent.mkdir(parents=True)
    bench.file.write_bytes(b"theirs\r\n")
    done = bench.install(force=True)
    assert done.action == "replaced"
    assert done.backup == bench.backups_dir / "refund-answers-20260301T123000Z.md"
    assert done.backup.read_bytes() == b"theirs\r\n"
    assert bench.file.read_text() == make_text()


def test_two_backups_in_one_second_get_two_names(bench) -> None:
    bench.install()
    for number in range(3):
        bench.file.write_text(f"edit {number}")
        bench.install(force=True)
    kept = sorted(path.read_text() for path in bench.backups_dir.glob("*.md"))
    assert kept == ["edit 0", "edit 1", "edit 2"]


def test_force_makes_no_backup_where_nothing_is_replaced(bench) -> None:
    assert bench.install(force=True).backup is None
    assert bench.install(force=True).action == "unchanged"
    assert not list(bench.backups_dir.glob("*.md"))


def test_a_backup_is_never_put_into_the_skills_folder(bench) -> None:
    bench.file.parent.mkdir(parents=True)
    bench.file.write_text("theirs")
    with pytest.raises(InstallError, match="inside the skills folder"):
        bench.install(force=True, backups_dir=bench.skills_dir / "home" / "backups")
    assert bench.file.read_text() == "theirs"


def test_an_edit_made_while_the_skill_is_staged_is_kept(
    bench, monkeypatch: pytest.MonkeyPatch, make_text: MakeText
) -> None:
    bench.install()
    real = os.fsync

    def edit_meanwhile(handle):
        bench.file.write_text("edited just now")
        real(handle)

    monkeypatch.setattr(os, "fsync", edit_meanwhile)
    with pytest.raises(InstallError, match="changed while"):
        bench.install(make_text(body="Newer."))
    assert bench.file.read_text() == "edited just now"


# --- what is refused before anything is written ---


def link(path: Path, to: Path) -> None:
    try:
        path.symlink_to(to, target_is_directory=to.is_dir())
    except OSError:
        pytest.skip("links cannot be made here")


@pytest.mark.parametrize("force", [False, True])
def test_a_linked_skill_folder_or_file_is_refused(bench, tmp_path: Path, force: bool) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "SKILL.md").write_text("theirs")
    bench.skills_dir.mkdir(parents=True)
    link(bench.file.parent, elsewhere)
    with changes_nothing(bench), pytest.raises(InstallError, match="is a link"):
        bench.install(force=force)
    bench.file.parent.unlink()
    bench.file.parent.mkdir()
    link(bench.file, elsewhere / "SKILL.md")
    with changes_nothing(bench), pytest.raises(InstallError, match="is a link"):
        bench.install(force=force)
    bench.file.unlink()
    link(bench.file, tmp_path / "nowhere")
    with changes_nothing(bench), pytest.raises(InstallError, match="is a link"):
        bench.install(force=force)
    assert (elsewhere / "SKILL.md").read_text() == "theirs"


@pytest.mark.parametrize("force", [False, True])
@pytest.mark.parametrize("neighbour", ["Refund-Answers", "REFUND-ANSWERS", "refund\uff0danswers"])
def test_a_neighbour_with_the_same_name_but_for_case_is_refused(
    bench, neighbour: str, force: bool
) -> None:
    (bench.skills_dir / neighbour).mkdir(parents=True)
    with changes_nothing(bench), pytest.raises(InstallError, match="same name"):
        bench.install(force=force)


def test_a_skill_file_in_other_letters_is_refused(bench) -> None:
    bench.file.parent.mkdir(parents=True)
    (bench.file.parent / "skill.md").write_text("theirs")
    with changes_nothing(bench), pytest.raises(InstallError, match="same name"):
        bench.install(force=True)


def test_another_kind_of_file_in_the_way_is_refused(bench) -> None:
    bench.skills_dir.mkdir(parents=True)
    bench.file.parent.write_text("a file")
    with changes_nothing(bench), pytest.raises(InstallError, match="not a folder"):
        bench.install(force=True)
    bench.file.parent.unlink()
    bench.file.mkdir(parents=True)
    with changes_nothing(bench), pytest.raises(InstallError, match="not an ordinary file"):
        bench.install(force=True)


def test_a_skills_folder_that_is_a_file_is_refused(bench) -> None:
    bench.skills_dir.parent.mkdir()
    bench.skills_dir.write_text("a file")
    with changes_nothing(bench), pytest.raises(InstallError, match="not a folder"):
        bench.install()
    bench.skills_dir.unlink()
    bench.skills_dir.parent.rmdir()
    bench.skills_dir.parent.write_text("a file")
    with changes_nothing(bench), pytest.raises(StorageError):
        bench.install()


@pytest.mark.parametrize(
    "name", ["../evil", "a/b", "a\\b", "..", ".", "CON", "nul", "C:x", "synced"]
)
def test_a_name_that_could_leave_the_folder_is_refused(
    bench, make_text: MakeText, name: str
) -> None:
    with changes_nothing(bench), pytest.raises(SkillDocumentError):
        bench.install(make_text(name=name))


def test_a_body_that_would_run_a_command_is_refused_naming_rule_and_line(
    bench, make_text: MakeText
) -> None:
    with changes_nothing(bench), pytest.raises(InstallError) as caught:
        bench.install(make_text(body="Fine.\n\n!`id`"), force=True)
    assert "shell-command in line 8" in caught.value.problem


def test_a_description_that_names_a_file_is_refused(bench) -> None:
    with changes_nothing(bench), pytest.raises(InstallError, match="file-reference in line 3"):
        bench.install("---\nname: x\ndescription: Read @~/.ssh/id_rsa\n---\n\nb")


def test_a_low_finding_does_not_stop_an_installation(bench, make_text: MakeText) -> None:
    assert bench.install(make_text(body="Refund $5. Great!")).action == "created"


def test_an_active_body_that_stands_there_already_changes_nothing(
    bench, make_text: MakeText
) -> None:
    bench.file.parent.mkdir(parents=True)
    bench.file.write_bytes(make_text(body="!`id`").encode())
    before = bench.tree()
    assert bench.install(make_text(body="!`id`")).action == "unchanged"
    assert bench.tree() == before


def test_frontmatter_that_widens_what_may_run_is_refused(bench) -> None:
    text = "---\nname: x\ndescription: y\nallowed-tools: Bash(*)\nhooks: {}\n---\n\nb"
    with changes_nothing(bench), pytest.raises(InstallError, match="allowed-tools, hooks"):
        bench.install(text, force=True)


# --- a disk that refuses ---


@pytest.mark.parametrize("function", ["replace", "mkdir", "fsync"])
@pytest.mark.parametrize(
    ("code", "error"),
    [(errno.ENOSPC, DiskFullError), (errno.EACCES, NotWritableError), (errno.EIO, StorageError)],
)
@pytest.mark.parametrize("before", ["nothing", "folder", "ours"])
def test_a_disk_that_refuses_leaves_everything_as_it_was(
    bench, monkeypatch, make_text: MakeText, function: str, code: int, error: type, before: str
) -> None:
    if before == "folder":
        bench.skills_dir.mkdir(parents=True)
    if before == "ours":
        bench.install()
    refuse_with(monkeypatch, function, code)
    with changes_nothing(bench), pytest.raises(error) as caught:
        bench.install(make_text(body="Newer."))
    assert caught.value.fix
    monkeypatch.undo()
    assert bench.install(make_text(body="Newer.")).action in ("created", "replaced")


@pytest.mark.skipif(
    sys.platform == "win32" or os.geteuid() == 0, reason="needs a user whom modes bind"
)
def test_a_read_only_skills_folder_is_reported(bench) -> None:
    bench.skills_dir.mkdir(parents=True)
    bench.skills_dir.chmod(0o555)
    try:
        with changes_nothing(bench), pytest.raises(NotWritableError):
            bench.install()
    finally:
        bench.skills_dir.chmod(0o755)


def test_a_library_that_refuses_leaves_the_folders_as_they_were(bench) -> None:
    with contextlib.closing(sqlite3.connect(bench.settings.library_path)) as other:
        other.execute("DROP TABLE installations")
    before = bench.tree()
    with pytest.raises(StorageError):
        bench.install()
    assert bench.tree() == before


# --- what is told ---


def test_no_more_is_promised_of_a_session_than_is_known(bench, make_text: MakeText) -> None:
    assert "is new, so a Claude Code that was running" in bench.install().visibility
    second = bench.install(make_text(name="other")).visibility
    assert "if the skills folder was there when that session began" in second


def test_a_personal_skill_of_the_same_name_is_said_to_hide_a_projects_one(
    bench, make_text: MakeText
) -> None:
    personal = bench.install(scope="user")
    assert "hides" not in personal.visibility
    assert Path(personal.installation.path).is_relative_to(bench.settings.claude_config_dir)
    hidden = bench.install()
    assert f"{personal.installation.path}, a personal skill" in hidden.visibility
    assert "hides" not in bench.install(make_text(name="other")).visibility


def test_any_target_can_be_given(bench, tmp_path: Path, make_text: MakeText) -> None:
    target = Target("claude-code", "user", tmp_path / "deep" / "er" / "skills")
    done = bench.install(target=target)
    assert Path(done.installation.path).read_text() == make_text()
