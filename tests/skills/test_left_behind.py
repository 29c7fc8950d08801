"""What a killed installation left beside a skills folder goes with the next look of any kind."""

from collections.abc import Callable
from pathlib import Path

import pytest
from support.staging import Stage

from stash_mcp.backends.installations import InstallOrder
from stash_mcp.skills import writing
from stash_mcp.skills.journal import noted
from stash_mcp.skills.writing import clean_up_around
from stash_mcp.storage.files import try_lock

LOOKS: dict[str, Callable[[Stage, str], object]] = {
    "the watcher": lambda stage, run_id: stage.backend.reconcile(),
    "a list": lambda stage, run_id: stage.backend.list_installed_skills(),
    "an installation elsewhere": lambda stage, run_id: stage.backend.install_skill(
        InstallOrder(run_id=run_id, agents=("goose",))
    ),
}


class Killed(BaseException):
    pass


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path)


def kill_in_the_middle(stage: Stage) -> tuple[str, Path]:
    """The id of a run whose installation was killed with its file staged, and that folder."""
    run = stage.finished(("Be polite.", 0.4), ("Ask first.", 0.6))
    [done] = stage.backend.install_skill(InstallOrder(run_id=run.id, candidate=0))
    path = Path(done.installation.path)
    with (
        pytest.raises(Killed),
        noted(stage.settings.backups_dir, done.installation),
    ):
        raise Killed
    staged = path.parents[2] / f"{writing._prefix(stage.settings.backups_dir)}abc"
    (staged / "polite-support").mkdir(parents=True)
    (staged / "polite-support" / "SKILL.md").write_text("half", encoding="utf-8")
    foreign = path.parents[2] / ".stash-skills-00000000-abc"
    foreign.mkdir()
    return run.id, staged


@pytest.mark.parametrize("look", LOOKS)
def test_the_next_look_removes_it_and_leaves_what_another_library_staged(
    stage: Stage, look: str
) -> None:
    run_id, staged = kill_in_the_middle(stage)
    LOOKS[look](stage, run_id)
    assert not staged.exists()
    assert (staged.parent / ".stash-skills-00000000-abc").exists()


def test_it_stays_while_an_installation_is_at_work(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, staged = kill_in_the_middle(stage)
    monkeypatch.setattr("stash_mcp.skills.journal.LOCK_SECONDS", 0.1)
    with try_lock(stage.settings.home / "install.lock") as ours:
        assert ours
        stage.backend.reconcile()
    assert staged.exists()


def test_a_folder_that_is_gone_is_no_error(stage: Stage) -> None:
    clean_up_around(stage.settings.home / "no" / "x" / "SKILL.md", stage.settings.backups_dir)
