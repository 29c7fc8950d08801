"""Installed skills over time: their states, former versions, taking one away."""

from dataclasses import dataclass
from pathlib import Path

import pytest

from stash_mcp.errors import InputError, InstallConflictError, InstallError, NotFoundError
from stash_mcp.skills.history import TakenAway, changes, file_state, find, former, uninstall
from stash_mcp.skills.versions import kept_text


@dataclass
class History:
    bench: object

    def latest(self):
        return find(self.bench.manifest, "refund-answers")

    def uninstall(self, *, force: bool = False, dry_run: bool = False) -> TakenAway:
        return uninstall(
            self.latest(),
            manifest=self.bench.manifest,
            backups_dir=self.bench.backups_dir,
            force=force,
            now=self.bench.manifest.all()[0].installed_at,
            dry_run=dry_run,
        )


@pytest.fixture
def history(bench, make_text) -> History:
    """Three versions of one skill."""
    for body in ("One.", "Two.", "Three."):
        bench.install(make_text(body=body))
    return History(bench)


def test_every_installation_is_a_version_whose_text_is_kept(bench, history, make_text) -> None:
    versions = bench.manifest.versions(str(bench.file))
    assert [row.version for row in versions] == [1, 2, 3]
    texts = [kept_text(bench.backups_dir, row.sha256) for row in versions]
    assert texts == [make_text(body=body) for body in ("One.", "Two.", "Three.")]


def test_the_state_follows_the_file(bench, history) -> None:
    assert file_state(history.latest()) == "current"
    bench.file.write_text("mine")
    assert file_state(history.latest()) == "edited"
    bench.file.unlink()
    assert file_state(history.latest()) == "missing"
    bench.file.mkdir()
    assert file_state(history.latest()) == "edited"
    bench.file.rmdir()
    bench.file.parent.rmdir()
    bench.file.parent.write_text("a file")
    assert file_state(history.latest()) == "missing"


def test_a_former_version_is_found_by_its_number_or_as_the_newest_other_text(
    bench, history, make_text
) -> None:
    bench.install(make_text(body="Three."), run_id="run-2")
    assert former(bench.manifest, history.latest(), None).version == 2
    assert former(bench.manifest, history.latest(), 1).version == 1
    with pytest.raises(NotFoundError, match=r"no version 9; it has 1 to 4"):
        former(bench.manifest, history.latest(), 9)


def test_a_skill_with_one_version_has_no_former_one(bench) -> None:
    bench.install()
    with pytest.raises(NotFoundError, match="no former version"):
        former(bench.manifest, find(bench.manifest, "refund-answers"), None)


def test_the_difference_is_from_what_stands_there_to_the_version(bench, history) -> None:
    bench.file.write_text(bench.file.read_text().replace("Three.", "Mine."))
    diff = changes(history.latest(), history.latest(), bench.backups_dir)
    assert "-Mine." in diff
    assert "+Three." in diff


def test_a_kept_text_that_is_gone_or_changed_is_refused(bench, history) -> None:
    digest = history.latest().sha256
    path = bench.backups_dir / "versions" / f"{digest}.md"
    path.write_text("something else")
    with pytest.raises(InstallError, match="was changed"):
        kept_text(bench.backups_dir, digest)
    path.unlink()
    with pytest.raises(InstallError, match="not kept any more"):
        kept_text(bench.backups_dir, digest)


def test_uninstalling_removes_the_file_and_its_empty_folder_and_keeps_a_copy(
    bench, history, make_text
) -> None:
    done = history.uninstall()
    assert not bench.file.parent.exists()
    assert bench.skills_dir.exists()
    assert done.backup.read_text() == make_text(body="Three.")
    assert file_state(history.latest()) == "uninstalled"
    with pytest.raises(NotFoundError, match="taken away before"):
        history.uninstall()


def test_uninstalling_leaves_other_files_of_the_folder(bench, history) -> None:
    notes = bench.file.parent / "notes.md"
    notes.write_text("mine")
    history.uninstall()
    assert notes.read_text() == "mine"
    assert not bench.file.exists()


def test_an_edited_skill_is_taken_away_only_by_force_and_after_a_copy(bench, history) -> None:
    bench.file.write_text("mine")
    before = bench.tree()
    with pytest.raises(InstallConflictError, match="edited since") as caught:
        history.uninstall()
    assert "-mine" in caught.value.diff
    assert bench.tree() == before
    assert history.uninstall(force=True).backup.read_text() == "mine"
    assert not bench.file.exists()


def test_a_dry_run_of_uninstalling_shows_everything_and_changes_nothing(bench, history) -> None:
    before = bench.tree(), bench.manifest.all(), list(bench.backups_dir.glob("*.md"))
    done = history.uninstall(dry_run=True)
    assert "-Three." in done.diff
    assert done.backup.parent == bench.backups_dir
    assert (bench.tree(), bench.manifest.all(), list(bench.backups_dir.glob("*.md"))) == before


def test_a_missing_file_is_recorded_as_taken_away(bench, history) -> None:
    bench.file.unlink()
    assert history.uninstall().backup is None
    assert file_state(history.latest()) == "uninstalled"


def test_a_skill_that_came_back_by_hand_after_uninstalling_is_not_ours(
    bench, history, make_text
) -> None:
    history.uninstall()
    bench.file.parent.mkdir()
    bench.file.write_text(make_text(body="Three."))
    with pytest.raises(InstallConflictError, match="not written by stash-skills"):
        bench.install(make_text(body="Four."))


def test_a_linked_skill_is_never_taken_away(bench, history, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    bench.file.parent.rename(elsewhere)
    try:
        bench.file.parent.symlink_to(elsewhere, target_is_directory=True)
    except OSError:
        pytest.skip("links cannot be made here")
    with pytest.raises(InstallError, match="is a link"):
        history.uninstall(force=True)
    assert (elsewhere / "SKILL.md").exists()


def test_a_skills_folder_that_leads_elsewhere_now_is_left_alone(
    bench, history, tmp_path: Path
) -> None:
    elsewhere = tmp_path / "elsewhere"
    bench.skills_dir.rename(elsewhere)
    try:
        bench.skills_dir.symlink_to(elsewhere, target_is_directory=True)
    except OSError:
        pytest.skip("links cannot be made here")
    (elsewhere / "refund-answers" / "SKILL.md").write_text("mine")
    with pytest.raises(InstallError, match="leads to"):
        history.uninstall(force=True)
    assert (elsewhere / "refund-answers" / "SKILL.md").exists()


def test_a_skill_is_found_by_name_path_or_folder_and_only_if_one_is_meant(bench, history) -> None:
    for name in ("refund-answers", str(bench.file), str(bench.file.parent)):
        assert find(bench.manifest, name) == history.latest()
    with pytest.raises(NotFoundError, match="No skill 'other'"):
        find(bench.manifest, "other")
    bench.install(scope="user")
    with pytest.raises(InputError, match="in 2 places"):
        find(bench.manifest, "refund-answers")
    assert find(bench.manifest, str(bench.file)).path == str(bench.file)


def test_a_link_in_place_of_the_skills_folder_is_an_edit(bench, tmp_path: Path) -> None:
    done = bench.install().installation
    bench.file.parent.rename(tmp_path / "elsewhere")
    bench.file.parent.symlink_to(tmp_path / "elsewhere")
    assert file_state(done) == "edited"
