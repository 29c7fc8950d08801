"""Several targets at once, dry runs, accepted findings, and mounts."""

import errno
import os
from datetime import UTC, datetime
from pathlib import Path

import pytest

from stash_mcp.errors import InputError, InstallConflictError, InstallError, StorageError
from stash_mcp.skills.install import install_all
from stash_mcp.skills.targets import resolve_all

AGENTS = ("claude-code", "codex", "amp", "cursor")


@pytest.fixture
def install_for(bench, make_text):
    def run(*agents: str, **options):
        defaults = {
            "targets": resolve_all(bench.settings, "project", agents or AGENTS),
            "run_id": "run-1",
            "candidate": 1,
            "manifest": bench.manifest,
            "backups_dir": bench.backups_dir,
            "force": False,
            "now": datetime(2026, 3, 1, 12, 30, tzinfo=UTC),
        }
        return install_all(options.pop("text", make_text()), **{**defaults, **options})

    return run


def test_each_agent_gets_the_skill_and_those_that_share_a_folder_share_the_file(
    bench, install_for, make_text
) -> None:
    done = install_for()
    folders = [Path(row.installation.path).parent.parent for row in done]
    project = bench.settings.project_dir
    assert folders == [
        project / ".claude/skills",
        project / ".agents/skills",
        project / ".agents/skills",
        project / ".cursor/skills",
    ]
    assert [row.action for row in done] == ["created", "created", "unchanged", "created"]
    for row in done:
        assert Path(row.installation.path).read_text() == make_text()
    assert len(bench.manifest.all()) == 3


def test_if_one_target_refuses_none_is_written(bench, install_for) -> None:
    theirs = bench.settings.project_dir / ".cursor/skills/refund-answers/SKILL.md"
    theirs.parent.mkdir(parents=True)
    theirs.write_text("theirs")
    before = bench.tree()
    with pytest.raises(InstallConflictError, match="not written by"):
        install_for()
    assert bench.tree() == before
    assert bench.manifest.all() == []


def test_a_dry_run_tells_paths_and_diff_and_writes_nothing(bench, install_for, make_text) -> None:
    bench.install()
    before = bench.tree(), bench.manifest.all(), list(bench.backups_dir.rglob("*"))
    bench.file.write_text("edited")
    before = bench.tree(), *before[1:]
    done = install_for(text=make_text(body="Newer."), force=True, dry_run=True)
    assert [row.action for row in done] == ["replaced", "created", "created", "created"]
    assert "-edited" in done[0].diff
    assert "+Newer." in done[1].diff
    assert done[0].backup.parent == bench.backups_dir
    assert (bench.tree(), bench.manifest.all(), list(bench.backups_dir.rglob("*"))) == before


def test_a_high_finding_is_named_with_its_line_and_accepted_by_its_rule(
    bench, install_for, make_text
) -> None:
    text = make_text(body="Fine.\n\n!`id`\nSee @~/notes.md")
    with pytest.raises(InstallError) as caught:
        install_for(text=text)
    assert "shell-command in line 8" in caught.value.problem
    assert caught.value.fix.endswith("accept these findings: shell-command, file-reference.")
    with pytest.raises(InstallError, match="file-reference"):
        install_for(text=text, accept_findings=["shell-command"])
    done = install_for(text=text, accept_findings=["shell-command", "file-reference"])
    assert {row.rule for row in done[0].findings} == {"shell-command", "file-reference"}
    assert bench.file.read_text() == text


def test_a_finding_that_does_not_exist_is_refused_with_those_there_are(install_for) -> None:
    with pytest.raises(InputError, match=r"No finding is called shell\..*shell-command"):
        install_for(accept_findings=["shell"])


def test_a_low_finding_is_told(install_for, make_text) -> None:
    [done] = install_for("codex", text=make_text(body="It costs $5."))
    assert [(row.rule, row.severity) for row in done.findings] == [("substitution", "low")]


def test_what_a_person_removed_is_not_put_back_by_itself_but_on_request(
    bench, install_for, make_text
) -> None:
    install_for("claude-code", by_itself=True)
    install_for("claude-code", text=make_text(body="Newer."), by_itself=True)
    bench.file.unlink()
    with pytest.raises(InstallError, match="was removed since"):
        install_for("claude-code", by_itself=True)
    assert not bench.file.exists()
    assert install_for("claude-code")[0].action == "created"


# --- where nothing can be moved in ---


@pytest.mark.parametrize("before", ["nothing", "ours", "folder"])
@pytest.mark.parametrize("code", [errno.EXDEV, errno.EROFS])
def test_a_skills_folder_that_is_a_mount_of_its_own_is_written_from_inside(
    bench, make_text, monkeypatch: pytest.MonkeyPatch, before: str, code: int
) -> None:
    bench.skills_dir.mkdir(parents=True)
    if before == "ours":
        bench.install()
    if before == "folder":
        bench.file.parent.mkdir()
        (bench.file.parent / "notes.md").write_text("mine")
    real, seen = os.replace, []

    def across(source, target):
        inside = [bench.skills_dir in Path(path).parents for path in (source, target)]
        if inside == [False, True]:
            raise OSError(code, os.strerror(code))
        seen.append(sorted(path.name for path in bench.skills_dir.iterdir()))
        real(source, target)

    monkeypatch.setattr(os, "replace", across)
    bench.install(make_text(body="Newer."))
    assert bench.file.read_text() == make_text(body="Newer.")
    # No folder stood among the skills that is none.
    assert all(names in ([], ["refund-answers"]) for names in seen)
    assert {path.name for path in bench.file.parent.iterdir()} <= {"SKILL.md", "notes.md"}
    assert [path.name for path in bench.skills_dir.parent.iterdir()] == ["skills"]


def test_a_mount_that_refuses_too_leaves_everything_as_it_was(
    bench, make_text, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.skills_dir.mkdir(parents=True)
    before = bench.tree()

    def across(source, target):
        if bench.skills_dir in Path(target).parents:
            raise OSError(errno.EXDEV, "Invalid cross-device link")
        real(source, target)

    real = os.replace
    monkeypatch.setattr(os, "replace", across)
    with pytest.raises(StorageError, match="cross-device"):
        bench.install()
    assert bench.tree() == before
    assert bench.manifest.all() == []


# --- simulated Windows ---


def test_a_file_that_windows_says_is_in_use_is_tried_again_and_not_for_ever(
    bench, make_text, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.install()
    monkeypatch.setattr("stash_mcp.storage.files._REPLACE_PAUSE_SECONDS", 0)
    real, refusals = os.replace, [3]

    def busy(source, target):
        if Path(target) == bench.file and refusals[0]:
            refusals[0] -= 1
            error = OSError(errno.EACCES, "in use")
            error.winerror = 32
            raise error
        real(source, target)

    monkeypatch.setattr(os, "replace", busy)
    assert bench.install(make_text(body="Newer.")).action == "replaced"
    refusals[0] = 1000
    with pytest.raises(StorageError):
        bench.install(make_text(body="Newest."))
    assert refusals[0] > 900
    assert bench.file.read_text() == make_text(body="Newer.")
