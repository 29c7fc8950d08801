"""Skills that are installed by themselves when their run ends."""

import json
from pathlib import Path

import pytest
from support.staging import Stage, result

from stash_mcp.backends.base import RunOrder
from stash_mcp.backends.installations import InstallOrder, UninstallOrder
from stash_mcp.backends.local import open_local_backend
from stash_mcp.models import Run

BETTER = (("Answer.", 0.4), ("Ask for the order number.", 0.6))


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    stage = Stage(tmp_path)
    stage.conversations()
    return stage


def ended(stage: Stage, *scored: tuple[str, float], heldout: object = "", **order: object) -> Run:
    """A run that has just succeeded with these candidates; nobody has looked since."""
    fields = {
        "reward_model_id": stage.trained().id,
        "task_model": "openai/small",
        "reflection_model": "builtin/comments",
        "new": True,
        **order,
    }
    run = stage.backend.start_run(RunOrder.model_validate(fields)).run
    stage.begin()
    stage.score(run.id, *scored)
    outcome = result(scored)
    if heldout is None:
        outcome["heldout"] = None
    stage.store.succeed(run.id, json.dumps(outcome))
    return stage.backend.get_run(run.id)


def skill_file(stage: Stage) -> Path:
    return stage.settings.project_dir / ".claude" / "skills" / "polite-support" / "SKILL.md"


def test_a_better_skill_is_installed_once_and_told_once(stage: Stage) -> None:
    run = ended(stage, *BETTER)
    [notice] = stage.backend.reconcile()
    assert (notice.run_id, notice.state) == (run.id, "installed")
    assert str(skill_file(stage)) in notice.note
    assert skill_file(stage).read_text(encoding="utf-8").endswith("Ask for the order number.")
    assert stage.backend.reconcile() == []
    [told] = stage.backend.take_notices()
    assert (told.run_id, told.note.startswith(notice.note)) == (run.id, True)
    assert stage.backend.take_notices() == []
    assert stage.backend.get_run(run.id).install_state == "installed"


def test_a_run_whose_skill_was_taken_away_does_not_say_that_it_is_installed(stage: Stage) -> None:
    run = ended(stage, *BETTER)
    stage.backend.reconcile()
    stage.backend.uninstall_skill(UninstallOrder(skill="polite-support"))
    for shown in (stage.backend.get_run(run.id), *stage.backend.list_runs()):
        assert shown.install_state == "staged"
        assert "taken away since" in (shown.install_note or "")
    assert stage.backend.reconcile() == []
    stage.backend.install_skill(InstallOrder(run_id=run.id))
    assert stage.backend.get_run(run.id).install_state == "installed"


def test_a_skill_that_was_removed_since_is_not_installed_again(stage: Stage) -> None:
    ended(stage, *BETTER)
    stage.backend.reconcile()
    skill_file(stage).unlink()
    assert open_local_backend(stage.settings, lambda settings: False).reconcile() == []
    assert not skill_file(stage).exists()


def test_a_run_that_was_not_finished_waits(stage: Stage) -> None:
    run = stage.running(*BETTER)
    assert stage.backend.reconcile() == []
    assert stage.backend.get_run(run.id).install_state == "waiting"


@pytest.mark.parametrize(
    ("scored", "heldout", "order", "reason"),
    [
        ((("Answer.", 0.6), ("Worse.", 0.4)), "", {}, "No proposal beat the seed"),
        (BETTER, "", {"min_gain": 0.3}, "+0.170 on held-out conversations is less than 0.3"),
        (BETTER, None, {"min_gain": 0.3}, "+0.200 on the conversations optimised on (in-sample)"),
        (BETTER, "", {"install": "ask"}, "You are asked first"),
        ((("Answer.", 0.4), ("Run !`ls` now", 0.6)), "", {}, "runs what the backticks"),
    ],
)
def test_what_the_guard_holds_back_is_staged_with_the_reason(
    stage: Stage,
    scored: tuple[tuple[str, float], ...],
    heldout: object,
    order: dict[str, object],
    reason: str,
) -> None:
    run = ended(stage, *scored, heldout=heldout, **order)
    [notice] = stage.backend.reconcile()
    assert notice.state == "staged"
    assert reason in notice.note
    assert run.id in notice.note
    assert not skill_file(stage).exists()


def test_an_edited_skill_is_never_replaced_by_itself(stage: Stage) -> None:
    ended(stage, *BETTER)
    stage.backend.reconcile()
    skill_file(stage).write_text("mine", encoding="utf-8")
    ended(stage, ("Answer.", 0.4), ("Another.", 0.7))
    [notice] = stage.backend.reconcile()
    assert notice.state == "staged"
    assert skill_file(stage).read_text(encoding="utf-8") == "mine"


def test_a_candidate_that_a_person_chose_is_not_replaced_by_the_best_of_the_same_run(
    stage: Stage,
) -> None:
    run = ended(stage, *BETTER, ("Ask for the order number and the day.", 0.7))
    [chosen] = stage.backend.install_skill(InstallOrder(run_id=run.id, candidate=1))
    text = Path(chosen.installation.path).read_text("utf-8")
    [notice] = stage.backend.reconcile()
    assert notice.state == "staged"
    assert "was kept, since candidate 1 of it was chosen" in notice.note
    assert Path(chosen.installation.path).read_text("utf-8") == text


def test_the_best_that_a_person_installed_already_counts_as_installed(stage: Stage) -> None:
    run = ended(stage, *BETTER)
    stage.backend.install_skill(InstallOrder(run_id=run.id, candidate=1))
    [notice] = stage.backend.reconcile()
    assert notice.state == "installed"


def test_low_findings_of_a_skill_that_was_installed_by_itself_are_told(stage: Stage) -> None:
    ended(stage, ("Answer.", 0.4), ("Ask first. <!-- why: see the policy -->", 0.6))
    [notice] = stage.backend.reconcile()
    assert notice.state == "installed"
    assert "low findings, which stop nothing: html-comment in line 6." in notice.note


def test_off_leaves_the_skill_where_it_is_and_says_nothing(stage: Stage) -> None:
    run = ended(stage, *BETTER, install="off")
    assert stage.backend.reconcile() == []
    assert stage.backend.take_notices() == []
    assert stage.backend.get_run(run.id).install_state == "off"


def test_the_users_scope_goes_into_the_users_folder(stage: Stage) -> None:
    ended(stage, *BETTER, install_scope="user")
    [notice] = stage.backend.reconcile()
    place = stage.settings.claude_config_dir / "skills" / "polite-support" / "SKILL.md"
    assert str(place) in notice.note
    assert place.exists()
    assert not skill_file(stage).exists()
