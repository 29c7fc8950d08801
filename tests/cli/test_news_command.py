"""What commands tell of what happened by itself, and runs that did not come to their end."""

import json
from pathlib import Path

import pytest
from support.staging import Stage

BETTER = (("Answer.", 0.4), ("Ask for the order number.", 0.6))


@pytest.fixture
def path(stage: Stage) -> Path:
    return stage.settings.project_dir / ".claude/skills/polite-support/SKILL.md"


def test_the_next_command_tells_what_was_installed_and_only_that_one(
    command, stage: Stage, path: Path
) -> None:
    stage.finished(*BETTER)
    stage.backend.reconcile()
    refused = command("status", "no-such-run")
    assert str(path) not in refused.err
    first = command("runs", "--json")
    assert f"is installed: {path}" in first.err
    json.loads(first.out)
    assert str(path) not in command("runs").err


def test_a_run_that_is_followed_ends_with_what_came_of_its_skill(
    command, stage: Stage, path: Path
) -> None:
    run = stage.finished(*BETTER)
    assert "is installed" not in command("status", run.id).out
    followed = command("status", run.id, "--follow")
    assert f"The skill of run {run.id} is installed: {path}." in followed.out
    assert path.exists()


def test_a_candidate_of_a_failed_run_is_installed_if_it_is_named(
    command, stage: Stage, path: Path
) -> None:
    run = stage.failed(*BETTER)
    unnamed = command("install", run.id)
    assert unnamed.code == 1
    assert "name a candidate that it had scored" in unnamed.err
    assert not path.exists()
    done = command("install", run.id, "--candidate", "1")
    assert "The run failed before its end" in done.out
    assert "It ended with: The task model refused the key." in done.out
    assert path.exists()
    assert json.loads(command("install", run.id, "--candidate", "1", "--json").out)["partial"]


def test_a_failed_run_without_candidates_has_none_to_install(command, stage: Stage) -> None:
    run = stage.failed()
    assert "has no candidate 1" in command("install", run.id, "--candidate", "1").err
    assert "name a candidate" not in command("install", run.id).err


def test_a_project_folder_that_is_missing_is_refused_and_not_made(
    command, stage: Stage, path: Path
) -> None:
    run = stage.finished(*BETTER)
    stage.settings.project_dir.rmdir()
    for order in ((), ("--agent", "codex"), ("--agent", "./mine")):
        refused = command("install", run.id, *order)
        assert refused.code == 1
        assert "Correct CLAUDE_PROJECT_DIR" in refused.err
    assert not stage.settings.project_dir.exists()
    assert command("install", run.id, "--scope", "user").code == 0


def test_a_run_from_the_installed_skill_says_so_in_its_plan(
    command, stage: Stage, path: Path
) -> None:
    command("install", stage.finished(*BETTER).id)
    path.write_text(path.read_text("utf-8") + "\nBe short.", encoding="utf-8")
    said = command("run", "--no-wait", "--task-model", "openai/x", "--seed", "installed")
    assert f"The seed is the installed {path}, edited by hand since." in said.err
    assert "random_seed" in command("run", "--task-model", "openai/x", "--seed", "7").err
