"""What hinders an installation by itself for a while leaves the run waiting, and is tried again."""

import dataclasses
import json
from datetime import timedelta
from pathlib import Path

import pytest
from support.staging import Stage, result

from stash_mcp.backends.base import RunOrder
from stash_mcp.errors import DiskFullError, InstallBusyError, LibraryBusyError, StorageError
from stash_mcp.models import Run
from stash_mcp.runs.installing import FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS
from stash_mcp.skills import install as install_module
from stash_mcp.skills.writing import LOCK_NAME
from stash_mcp.storage.files import try_lock

BETTER = (("Answer.", 0.4), ("Ask for the order number.", 0.6))
FULL = DiskFullError("Could not write it: No space left on device.", "Free some space.")
BUSY = LibraryBusyError("Another process has been writing for 30 s.", "Wait.")
CHANGED = InstallBusyError("It was changed while this was going on.", "Do it again.")


class Disk:
    """`error` is what writing into a skills folder whose path holds `where` raises now."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.error: Exception | None = None
        self.where = ""
        self.tries = 0
        self._real = install_module.write
        monkeypatch.setattr(install_module, "write", self.write)

    def write(self, place, *rest) -> None:
        if self.error is not None and self.where in str(place.folder):
            self.tries += 1
            raise self.error
        self._real(place, *rest)


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Disk:
    return Disk(monkeypatch)


def skill_file(stage: Stage, folder: str = ".claude/skills") -> Path:
    return stage.settings.project_dir / folder / "polite-support" / "SKILL.md"


def later(stage: Stage, seconds: float) -> None:
    stage.now += timedelta(seconds=seconds)


def said_of_installing(stage: Stage, run: Run) -> list[str]:
    return [row.message for row in stage.backend.events(run.id) if "The skill of" in row.message]


@pytest.mark.parametrize("error", [FULL, BUSY, CHANGED, StorageError("Input/output error.", "Do.")])
def test_what_may_pass_leaves_the_run_waiting_and_it_is_installed_later(
    stage: Stage, disk: Disk, error: Exception
) -> None:
    run = stage.finished(*BETTER)
    disk.error = error
    assert stage.backend.reconcile() == []
    waiting = stage.backend.get_run(run.id)
    assert waiting.install_state == "waiting"
    assert error.problem in (waiting.install_note or "")
    assert "not installed yet" in (waiting.install_note or "")
    disk.error = None
    assert stage.backend.reconcile() == []
    later(stage, FIRST_PAUSE_SECONDS)
    [notice] = stage.backend.reconcile()
    assert notice.state == "installed"
    assert skill_file(stage).exists()


def test_the_pauses_grow_and_the_history_has_one_event_of_it(stage: Stage, disk: Disk) -> None:
    run = stage.finished(*BETTER)
    disk.error = FULL
    pauses, since = [], 0.0
    while len(pauses) < 9:
        tries = disk.tries
        stage.backend.reconcile()
        if disk.tries > tries:
            pauses.append(since)
            since = 0.0
        later(stage, 5)
        since += 5
    assert pauses[:5] == [0, 5, 10, 20, 40]
    assert max(pauses) == LONGEST_PAUSE_SECONDS
    assert len(said_of_installing(stage, run)) == 1
    disk.error = None
    stage.backend.reconcile(at_once=True)
    assert "is installed" in said_of_installing(stage, run)[-1]


def test_a_clock_that_was_set_back_does_not_make_the_pause_longer(stage: Stage, disk: Disk) -> None:
    stage.finished(*BETTER)
    disk.error = FULL
    stage.backend.reconcile()
    disk.error = None
    stage.now -= timedelta(days=30)
    assert [row.state for row in stage.backend.reconcile()] == ["installed"]


def test_it_is_told_once_that_it_waits_and_once_that_it_is_done(stage: Stage, disk: Disk) -> None:
    stage.finished(*BETTER)
    disk.error = FULL
    stage.backend.reconcile()
    [waits] = stage.backend.take_notices()
    assert "No space left on device. It is tried again by itself" in waits.note
    later(stage, 60)
    stage.backend.reconcile()
    assert stage.backend.take_notices() == []
    disk.error = None
    later(stage, 60)
    stage.backend.reconcile()
    [done] = stage.backend.take_notices()
    assert done.state == "installed"
    assert stage.backend.take_notices() == []


def test_an_installation_that_is_going_on_is_waited_for(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("stash_mcp.skills.journal.LOCK_SECONDS", 0.0)
    run = stage.finished(*BETTER)
    with try_lock(stage.settings.home / LOCK_NAME) as ours:
        assert ours
        assert stage.backend.reconcile() == []
    assert stage.backend.get_run(run.id).install_state == "waiting"
    assert [row.state for row in stage.backend.reconcile(at_once=True)] == ["installed"]


def test_one_run_that_is_put_off_does_not_hold_up_another(stage: Stage, disk: Disk) -> None:
    stage.finished(*BETTER)
    disk.error = FULL
    stage.backend.reconcile()
    elsewhere = dataclasses.replace(stage.settings, project_dir=stage.settings.home.parent / "two")
    elsewhere.project_dir.mkdir()
    order = RunOrder(
        reward_model_id=stage.trained().id,
        task_model="openai/small",
        reflection_model="builtin/comments",
        new=True,
    )
    other = stage.open(elsewhere)
    other._new_id = lambda: "other"
    run = other.start_run(order).run
    stage.begin()
    stage.score(run.id, *BETTER)
    disk.where = str(stage.settings.project_dir)
    succeed(stage, run)
    assert [row.run_id for row in stage.backend.reconcile()] == [run.id]


def test_what_fails_at_the_second_target_says_where_the_skill_is_and_is_completed(
    stage: Stage, disk: Disk
) -> None:
    run = ended_for(stage, "claude-code", "cursor")
    disk.error, disk.where = FULL, ".cursor"
    assert stage.backend.reconcile() == []
    note = stage.backend.get_run(run.id).install_note or ""
    assert str(skill_file(stage)) in note
    assert "No space left on device" in note
    assert skill_file(stage).exists()
    disk.error = None
    [notice] = stage.backend.reconcile(at_once=True)
    assert notice.state == "installed"
    assert skill_file(stage, ".cursor/skills").exists()
    versions = stage.backend.get_installed_skill(str(skill_file(stage))).versions
    assert [row.version for row in versions] == [1]


def test_what_was_written_before_an_edit_stopped_the_rest_is_told(stage: Stage, disk: Disk) -> None:
    run = ended_for(stage, "claude-code", "cursor")
    disk.error, disk.where = FULL, ".cursor"
    stage.backend.reconcile()
    theirs = skill_file(stage, ".cursor/skills")
    theirs.parent.mkdir(parents=True)
    theirs.write_text("theirs", encoding="utf-8")
    [notice] = stage.backend.reconcile(at_once=True)
    assert notice.state == "staged"
    assert f"The skill of run {run.id} is in {skill_file(stage)}, and not" in notice.note
    assert theirs.read_text(encoding="utf-8") == "theirs"


def ended_for(stage: Stage, *agents: str) -> Run:
    stage.conversations()
    order = RunOrder(
        reward_model_id=stage.trained().id,
        task_model="openai/small",
        reflection_model="builtin/comments",
        install_agents=agents,
    )
    run = stage.backend.start_run(order).run
    stage.begin()
    stage.score(run.id, *BETTER)
    succeed(stage, run)
    return run


def succeed(stage: Stage, run: Run) -> None:
    stage.store.succeed(run.id, json.dumps(result(BETTER)))
