"""What a finished skill has to be to be installed by itself."""

import json
from pathlib import Path

import pytest
from support.staging import Stage, result

from stash_mcp.backends.base import RunOrder
from stash_mcp.backends.local.guards import held_back
from stash_mcp.models import InstallWish, Notice, RewardModel, Run
from stash_mcp.server.wording import at_the_end

SEED = ("Answer.", 0.4)


@pytest.fixture
def model(stage: Stage) -> RewardModel:
    stage.conversations()
    return stage.trained()


def settled(
    stage: Stage, model: RewardModel, body: str, score: float, heldout: float | None, **order
) -> Notice:
    """Of a run that ends with this candidate, which scored `heldout` on held-out conversations."""
    fields = {
        "reward_model_id": model.id,
        "task_model": "openai/small",
        "reflection_model": "builtin/comments",
        "new": True,
        **order,
    }
    run = stage.backend.start_run(RunOrder.model_validate(fields)).run
    stage.begin()
    scored = (SEED, (body, score))
    stage.score(run.id, *scored)
    outcome = result(scored)
    if heldout is None:
        outcome["heldout"] = None
    else:
        outcome["heldout"] |= {"best_score": heldout, "gain": heldout - 0.41}
    stage.store.succeed(run.id, json.dumps(outcome))
    [notice] = stage.backend.reconcile()
    return notice


def body_of(stage: Stage) -> str:
    folder = stage.settings.project_dir / ".claude/skills/polite-support"
    return (folder / "SKILL.md").read_text(encoding="utf-8").rsplit("\n", 1)[-1]


# --- the gain ---


@pytest.mark.parametrize(
    ("heldout", "min_gain", "state"),
    [
        (0.61, 0.2, "installed"),
        (0.61, 0.2000001, "staged"),
        (0.41, 0.0, "staged"),
        (0.40, 0.0, "staged"),
        (0.42, 0.0, "installed"),
    ],
)
def test_a_gain_of_min_gain_is_enough_and_none_never_is(
    stage: Stage, model: RewardModel, heldout: float, min_gain: float, state: str
) -> None:
    # 0.61 - 0.41 is a little less than 0.2 to a computer.
    assert settled(stage, model, "Better.", 0.6, heldout, min_gain=min_gain).state == state


def test_a_run_that_names_no_folder_is_staged_and_says_so(stage: Stage) -> None:
    run = stage.finished(SEED, ("Better.", 0.6))
    bare = run.model_copy(update={"install": InstallWish(targets=())})
    assert held_back(bare) == "The run named no skills folder for it."
    assert held_back(run) is None


# --- never a worse one for a better one ---


def test_a_skill_that_scored_worse_by_the_same_reward_model_does_not_replace_a_better_one(
    stage: Stage, model: RewardModel
) -> None:
    settled(stage, model, "Best.", 0.9, 0.8)
    notice = settled(stage, model, "Worse.", 0.95, 0.5)
    assert notice.state == "staged"
    assert "scored 0.800 on held-out conversations by the same reward model" in notice.note
    assert "this one 0.500" in notice.note
    assert body_of(stage) == "Best."


@pytest.mark.parametrize("heldout", [0.8, 0.81])
def test_one_that_scored_as_high_or_higher_replaces_it(
    stage: Stage, model: RewardModel, heldout: float
) -> None:
    settled(stage, model, "Good.", 0.9, 0.8)
    assert settled(stage, model, "Next.", 0.5, heldout).state == "installed"
    assert body_of(stage) == "Next."


def test_where_one_was_not_measured_on_held_out_ones_the_others_are_compared(
    stage: Stage, model: RewardModel
) -> None:
    settled(stage, model, "Best.", 0.9, None)
    notice = settled(stage, model, "Worse.", 0.5, 0.8)
    assert "scored 0.900 on the conversations optimised on (in-sample)" in notice.note
    assert body_of(stage) == "Best."


def test_scores_of_another_reward_model_or_task_model_are_not_compared(
    stage: Stage, model: RewardModel
) -> None:
    settled(stage, model, "Best.", 0.9, 0.8)
    assert settled(stage, stage.trained(), "After more comments.", 0.5, 0.5).state == "installed"
    other = settled(stage, model, "Of another.", 0.45, 0.45, task_model="openai/other")
    assert other.state == "installed"
    assert body_of(stage) == "Of another."


def test_a_run_that_started_from_the_installed_skill_is_compared_with_its_own_seed(
    stage: Stage, model: RewardModel
) -> None:
    settled(stage, model, "Best.", 0.9, 0.8)
    assert settled(stage, model, "On top.", 0.5, 0.5, seed="installed").state == "installed"


def test_a_skill_that_was_edited_is_a_conflict_whatever_it_scored(
    stage: Stage, model: RewardModel
) -> None:
    settled(stage, model, "Best.", 0.9, 0.8)
    file = stage.settings.project_dir / ".claude/skills/polite-support/SKILL.md"
    file.write_text("mine", encoding="utf-8")
    notice = settled(stage, model, "Worse.", 0.5, 0.5)
    assert "was edited since" in notice.note
    assert file.read_text(encoding="utf-8") == "mine"


# --- all or none ---


def test_if_one_target_refuses_none_is_written_and_nothing_else_is_said(
    stage: Stage, model: RewardModel
) -> None:
    theirs = stage.settings.project_dir / ".cursor/skills/polite-support/SKILL.md"
    theirs.parent.mkdir(parents=True)
    theirs.write_text("theirs", encoding="utf-8")
    agents = ("claude-code", "cursor")
    notice = settled(stage, model, "Better.", 0.6, 0.6, install_agents=agents)
    assert notice.state == "staged"
    assert f"ready and not installed: {theirs} was not written by" in notice.note
    assert "already" not in notice.note
    assert not Path(stage.settings.project_dir, ".claude").exists()


def test_a_best_candidate_that_is_not_kept_is_staged(
    stage: Stage, model: RewardModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stage.backend, "_candidates_of", lambda run_id: [])
    assert "number 1, is not kept" in settled(stage, model, "Better.", 0.6, 0.6).note


def test_what_the_run_says_it_will_do_names_the_least_gain(
    stage: Stage, model: RewardModel
) -> None:
    def said(min_gain: float) -> str:
        run: Run = stage.finished(SEED)
        return at_the_end(run.install.model_copy(update={"min_gain": min_gain}))

    assert "if it beats the seed by 0.02 or more and nothing" in said(0.02)
    assert "if it beats the seed and nothing" in said(0.0)
