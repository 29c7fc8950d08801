"""Files of ours whose path is another one by now, or whose line ends are."""

import shutil
from pathlib import Path

import pytest

from stash_mcp.errors import InstallConflictError, InstallError
from stash_mcp.skills.history import changes, file_state, find, line_ends_changed, uninstall
from stash_mcp.skills.install import install
from stash_mcp.skills.targets import FOLDER, Target


def link(path: Path, to: Path) -> None:
    try:
        path.symlink_to(to, target_is_directory=True)
    except OSError:
        pytest.skip("links cannot be made here")


@pytest.fixture
def dotfiles(bench, tmp_path: Path) -> Path:
    """`.claude` of the project, with an installed skill, was moved and linked back."""
    bench.install()
    moved = tmp_path / "dotfiles" / "claude"
    moved.parent.mkdir()
    (bench.settings.project_dir / ".claude").rename(moved)
    link(bench.settings.project_dir / ".claude", moved)
    return moved / "skills" / "refund-answers" / "SKILL.md"


def latest(bench):
    return find(bench.manifest, "refund-answers")


def take_away(bench, *, dry_run: bool = False):
    return uninstall(
        latest(bench),
        manifest=bench.manifest,
        backups_dir=bench.backups_dir,
        force=False,
        now=latest(bench).installed_at,
        dry_run=dry_run,
    )


def test_a_skill_in_a_folder_that_was_moved_and_linked_back_is_ours_and_replaced(
    bench, dotfiles: Path, make_text
) -> None:
    done = bench.install(make_text(body="Newer."))
    assert (done.action, done.installation.version) == ("replaced", 2)
    assert dotfiles.read_text() == make_text(body="Newer.")
    assert [row.path for row in bench.manifest.all()] == [str(dotfiles)] * 2
    assert file_state(latest(bench)) == "current"


def test_an_edit_in_a_folder_that_was_moved_is_called_an_edit_and_is_kept(
    bench, dotfiles: Path, make_text
) -> None:
    dotfiles.write_text("mine")
    with pytest.raises(InstallConflictError, match="was edited since stash-skills wrote it"):
        bench.install(make_text(body="Newer."))
    assert dotfiles.read_text() == "mine"


def test_a_skill_in_a_folder_that_was_moved_is_taken_away_and_comes_back(
    bench, dotfiles: Path, make_text
) -> None:
    before = bench.manifest.all()
    take_away(bench, dry_run=True)
    assert (bench.manifest.all(), dotfiles.exists()) == (before, True)
    take_away(bench)
    assert not dotfiles.exists()
    assert file_state(latest(bench)) == "uninstalled"
    assert bench.install(make_text()).installation.version == 2


def test_a_dry_run_leaves_the_history_at_its_path(bench, dotfiles: Path, make_text) -> None:
    before = bench.manifest.all()
    install(
        make_text(body="Newer."),
        target=Target("claude-code", "project", bench.skills_dir),
        run_id="run-2",
        candidate=1,
        manifest=bench.manifest,
        backups_dir=bench.backups_dir,
        force=False,
        now=before[0].installed_at,
        dry_run=True,
    )
    assert bench.manifest.all() == before


def test_a_skill_of_a_project_that_was_renamed_is_ours(bench, tmp_path: Path, make_text) -> None:
    bench.install()
    renamed = tmp_path / "renamed"
    bench.settings.project_dir.rename(renamed)
    target = Target("claude-code", "project", renamed / ".claude/skills")
    done = bench.install(make_text(body="Newer."), target=target)
    assert (done.action, done.installation.version) == ("replaced", 2)
    assert len(bench.manifest.latest_of_each()) == 1


def test_an_edit_in_a_project_that_was_renamed_is_kept(bench, tmp_path: Path, make_text) -> None:
    bench.install()
    renamed = tmp_path / "renamed"
    bench.settings.project_dir.rename(renamed)
    file = renamed / ".claude/skills/refund-answers/SKILL.md"
    file.write_text("mine")
    target = Target("claude-code", "project", renamed / ".claude/skills")
    with pytest.raises(InstallConflictError, match="was not written by stash-skills;"):
        bench.install(make_text(body="Newer."), target=target)
    assert file.read_text() == "mine"


def test_a_copy_of_our_text_elsewhere_is_not_ours_and_said_to_be_a_copy(
    bench, tmp_path: Path, make_text
) -> None:
    bench.install()
    shutil.copytree(bench.skills_dir, tmp_path / "copy")
    target = Target(FOLDER, FOLDER, tmp_path / "copy")
    words = "holds the text of version 1, which was installed as .*project"
    with pytest.raises(InstallConflictError, match=words):
        bench.install(make_text(body="Newer."), target=target)


def test_an_edit_back_to_a_former_version_is_an_edit_and_says_which(bench, make_text) -> None:
    bench.install()
    bench.install(make_text(body="Two."))
    bench.file.write_text(make_text())
    with pytest.raises(InstallConflictError, match="holds the text of version 1 again"):
        bench.install(make_text(body="Three."))


# --- line ends ---


@pytest.fixture
def crlf(bench) -> bytes:
    """What Git makes of the installed file where it is told to."""
    bench.install()
    content = bench.file.read_bytes().replace(b"\n", b"\r\n")
    bench.file.write_bytes(content)
    return content


def test_a_file_whose_line_ends_alone_were_changed_is_current(bench, crlf: bytes) -> None:
    assert (file_state(latest(bench)), line_ends_changed(latest(bench))) == ("current", True)
    assert changes(latest(bench), latest(bench), bench.backups_dir) == ""
    bench.file.write_bytes(crlf + b"mine")
    assert file_state(latest(bench)) == "edited"


def test_a_file_whose_line_ends_alone_were_changed_is_replaced_and_taken_away(
    bench, crlf: bytes, make_text
) -> None:
    assert bench.install(make_text(body="Newer.")).action == "replaced"
    assert bench.file.read_text(encoding="utf-8") == make_text(body="Newer.")
    assert not line_ends_changed(latest(bench))
    bench.file.write_bytes(bench.file.read_bytes().replace(b"\n", b"\r\n"))
    take_away(bench)
    assert not bench.file.exists()


# --- links that lead nowhere ---


@pytest.mark.parametrize("linked", [".claude", ".claude/skills"])
def test_what_a_link_that_leads_nowhere_names_is_not_made(
    bench, tmp_path: Path, linked: str
) -> None:
    path = bench.settings.project_dir / linked
    path.parent.mkdir(exist_ok=True)
    link(path, tmp_path / "gone")
    with pytest.raises(InstallError, match=r"is a link to .*gone, which is not there"):
        bench.install()
    assert not (tmp_path / "gone").exists()


def test_a_link_that_leads_to_a_folder_is_followed(bench, tmp_path: Path, make_text) -> None:
    (tmp_path / "there").mkdir()
    link(bench.settings.project_dir / ".claude", tmp_path / "there")
    bench.install()
    assert (tmp_path / "there/skills/refund-answers/SKILL.md").read_text() == make_text()
