"""`install` for several agents, `installed`, `rollback`, `uninstall`, `targets`."""

import json
from pathlib import Path

import pytest
from support.staging import Stage

from stash_mcp.models import Run


@pytest.fixture
def run(stage: Stage) -> Run:
    return stage.finished(("Be polite.", 0.4), ("Ask first.", 0.6))


@pytest.fixture
def path(stage: Stage) -> Path:
    return stage.settings.project_dir / ".claude/skills/polite-support/SKILL.md"


@pytest.fixture
def two_versions(command, run: Run) -> Run:
    command("install", run.id, "--candidate", "0")
    command("install", run.id)
    return run


def test_install_goes_to_every_agent_that_is_named_and_to_a_folder(
    command, run: Run, stage: Stage
) -> None:
    said = command("install", run.id, "--agent", "codex", "--agent", "./mine", "--json")
    rows = json.loads(said.out)["installed"]
    project = stage.settings.project_dir
    assert [row["installation"]["path"] for row in rows] == [
        str(project / ".agents/skills/polite-support/SKILL.md"),
        str(project / "mine/polite-support/SKILL.md"),
    ]
    assert [row["installation"]["scope"] for row in rows] == ["project", "folder"]
    assert all(Path(row["installation"]["path"]).exists() for row in rows)


def test_an_unknown_agent_and_a_skills_own_folder_are_refused(command, run: Run, path) -> None:
    unknown = command("install", run.id, "--agent", "hal")
    assert (unknown.code, "Choose one of: agents, amp" in unknown.err) == (1, True)
    command("install", run.id)
    inside = command("install", run.id, "--agent", str(path.parent))
    assert (inside.code, "folder of one skill" in inside.err) == (1, True)


def test_a_dry_run_prints_the_diff_and_the_path_and_writes_nothing(command, run: Run, path) -> None:
    said = command("install", run.id, "--dry-run")
    assert f"To be created: {path}" in said.out
    assert "+Ask first." in said.out
    assert not path.exists()
    assert command("installed", "--json").out.strip() == "[]"


def test_a_finding_is_accepted_by_its_rule(command, stage: Stage, path) -> None:
    run = stage.finished(("Be polite.", 0.4), ("Run this: !`id`", 0.6))
    refused = command("install", run.id)
    assert refused.code == 1
    assert "shell-command in line" in refused.err
    done = command("install", run.id, "--accept-finding", "shell-command")
    assert "Finding: shell-command (high), line" in done.out
    assert path.exists()


def test_installed_lists_state_origin_and_version(command, two_versions: Run, path) -> None:
    [row] = json.loads(command("installed", "--json").out)
    assert (row["state"], row["installation"]["version"]) == ("current", 2)
    assert row["origin"] == {
        "reward_model_id": two_versions.request.reward_model_id,
        "score": 0.6,
        "seed_score": 0.4,
        "score_kind": "in-sample",
        "heldout_gain": 0.17,
    }
    path.write_text("mine", encoding="utf-8")
    assert "edited" in command("installed").out
    path.unlink()
    assert "missing" in command("installed").out


def test_a_later_run_of_the_same_skill_is_a_newer_one(command, two_versions: Run, stage: Stage):
    later = stage.finished(("Be polite.", 0.4), ("Ask twice.", 0.7))
    [row] = json.loads(command("installed", "--json").out)
    assert (row["state"], row["newer_run"]) == ("newer available", later.id)
    assert f"The run {later.id} has a newer one." in command("installed", "polite-support").out


def test_one_installed_skill_shows_its_versions_and_a_diff(command, two_versions: Run) -> None:
    same = command("installed", "polite-support")
    assert "The file is the same as version 2." in same.out
    other = command("installed", "polite-support", "--version", "1")
    assert "-Ask first." in other.out
    assert "+Be polite." in other.out
    unknown = command("installed", "polite-support", "--version", "7")
    assert (unknown.code, "no version 7; it has 1 to 2" in unknown.err) == (1, True)


def test_rollback_brings_the_former_text_back_as_the_newest_version(
    command, two_versions: Run, path
) -> None:
    before = path.read_text("utf-8")
    planned = command("rollback", "polite-support", "--dry-run")
    assert "+Be polite." in planned.out
    assert path.read_text("utf-8") == before
    done = json.loads(command("rollback", "polite-support", "--json").out)
    assert (done["installation"]["version"], done["installation"]["kind"]) == (3, "rollback")
    assert path.read_text("utf-8").endswith("Be polite.")
    command("rollback", "polite-support", "--version", "2")
    assert path.read_text("utf-8") == before


def test_rollback_never_goes_over_an_edit(command, two_versions: Run, path) -> None:
    path.write_text("mine", encoding="utf-8")
    refused = command("rollback", "polite-support", "--version", "1")
    assert (refused.code, "edited since" in refused.err) == (1, True)
    assert path.read_text("utf-8") == "mine"
    forced = command("rollback", "polite-support", "--version", "1", "--force")
    assert "is kept in" in forced.out
    assert path.read_text("utf-8").endswith("Be polite.")


def test_uninstall_removes_keeps_a_copy_and_can_be_taken_back(
    command, two_versions: Run, path
) -> None:
    text = path.read_text("utf-8")
    planned = command("uninstall", "polite-support", "--dry-run")
    assert f"To be removed: {path}" in planned.out
    assert path.exists()
    done = json.loads(command("uninstall", "polite-support", "--json").out)
    assert Path(done["backup"]).read_text("utf-8") == text
    assert not path.parent.exists()
    assert "uninstalled" in command("installed").out
    assert command("uninstall", "polite-support").code == 1
    command("rollback", "polite-support")
    assert path.read_text("utf-8") == text


def test_uninstall_leaves_what_was_edited_and_what_is_not_ours(
    command, two_versions: Run, path
) -> None:
    path.write_text("mine", encoding="utf-8")
    assert command("uninstall", "polite-support").code == 1
    assert path.read_text("utf-8") == "mine"
    unknown = command("uninstall", "other")
    assert (unknown.code, "No skill 'other'" in unknown.err) == (1, True)


def test_targets_lists_every_agent_and_says_which_project_and_why(command, stage: Stage) -> None:
    (stage.settings.user_home / ".cursor").mkdir(parents=True)
    found = json.loads(command("targets", "--json").out)
    rows = {(row["agent"], row["scope"]): row for row in found["folders"]}
    assert len(rows) == 20
    assert rows["cursor", "user"]["agent_found"] is True
    assert rows["cursor", "user"]["exists"] is False
    assert rows["goose", "user"]["agent_found"] is False
    shown = command("targets").out
    assert f"The project is {stage.settings.project_dir}: it was given." in shown


@pytest.mark.parametrize(
    "written", [".claude/skills/polite-support", "./.claude/skills/polite-support/SKILL.md"]
)
def test_a_path_that_starts_at_the_project_means_the_installed_skill(
    command, run: Run, path: Path, written: str
) -> None:
    command("install", run.id)
    assert f"{path}: current" in command("installed", written).out
    assert command("uninstall", written).code == 0
    assert command("rollback", written).code == 0
    assert path.exists()


def test_a_path_that_starts_at_the_home_means_the_installed_skill(
    command, run: Run, stage: Stage
) -> None:
    command("install", run.id, "--agent", "~/sk")
    assert (stage.settings.user_home / "sk/polite-support/SKILL.md").exists()
    assert command("uninstall", "~/sk/polite-support").code == 0
    assert "another user's home" in command("uninstall", "~root/sk/polite-support").err


def test_a_dry_run_writes_no_file_at_all(command, run: Run, stage: Stage) -> None:
    def files() -> set[Path]:
        return set(stage.settings.home.parent.rglob("*"))

    before = files()
    command("install", run.id, "--dry-run")
    assert files() == before
    command("install", run.id)
    before = files()
    for order in (("uninstall",), ("rollback",), ("uninstall", "--force")):
        command(*order, "polite-support", "--dry-run")
    assert files() == before


def test_taking_away_what_several_agents_share_says_for_whom_it_goes(
    command, run: Run, path: Path
) -> None:
    command("install", run.id, "--agent", "codex", "--agent", "amp")
    assert "codex, amp, agents" in command("installed").out
    planned = command("uninstall", "polite-support", "--dry-run").out
    assert "codex, amp and agents share this file: it would be gone for all of them." in planned
    assert "SKILL.md (to be removed)" in planned
    assert "it is gone for all of them" in command("uninstall", "polite-support").out
    command("install", run.id)
    assert "share this file" not in command("uninstall", str(path)).out


def test_line_ends_that_git_changed_are_no_edit(command, run: Run, path: Path) -> None:
    command("install", run.id)
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    said = command("installed", "polite-support").out
    assert f"{path}: current" in said
    assert "Its line ends were changed" in said
    assert command("uninstall", "polite-support").code == 0


def test_a_command_promises_no_more_than_it_knows_of_a_running_session(
    command, run: Run, path: Path
) -> None:
    path.parent.parent.mkdir(parents=True)
    said = command("install", run.id).out
    assert "if the skills folder was there when that session began" in said
    assert "within a few seconds" not in said
