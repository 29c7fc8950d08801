import json

import pytest
from support.staging import Stage

from stash_mcp.models import Run


@pytest.fixture
def run(stage: Stage) -> Run:
    return stage.finished(("Be polite.", 0.4), ("Be very polite.", 0.3), ("Ask first.", 0.6))


def test_candidates_come_best_first_with_their_gain(command, run: Run) -> None:
    listed = json.loads(command("candidates", run.id, "--json").out)
    assert [row["number"] for row in listed] == [2, 0, 1]
    table = command("candidates", run.id).out
    assert table.split("\n")[1].split() == ["2", "0.600", "+0.200", "0", "Ask", "first."]


def test_one_candidate_is_printed_whole_and_as_a_diff(command, run: Run) -> None:
    whole = command("candidates", run.id, "--show", "2").out
    assert whole.startswith("---\nname: polite-support\n")
    assert whole.endswith("\n\nAsk first.\n")
    best = command("candidates", run.id, "--diff").out
    assert "-Be polite.\n+Ask first.\n" in best
    named = json.loads(command("candidates", run.id, "--show", "1", "--json").out)
    assert "+Be very polite." in named["diff"]
    assert "same as the seed" in command("candidates", run.id, "--show", "0", "--diff").out


def test_candidates_are_sorted_filtered_and_compared_with_their_parent(command, run: Run) -> None:
    oldest = json.loads(command("candidates", run.id, "--sort", "oldest", "--json").out)
    assert [row["number"] for row in oldest] == [0, 1, 2]
    better = json.loads(command("candidates", run.id, "--better-only", "--json").out)
    assert [row["number"] for row in better] == [2]
    very = json.loads(command("candidates", run.id, "--contains", "VERY", "--json").out)
    assert [row["number"] for row in very] == [1]
    shown = json.loads(command("candidates", run.id, "--show", "2", "--parent", "--json").out)
    assert (shown["lineage"], shown["diff_to"]) == ([0, 2], 0)
    scores = command("candidates", run.id, "--show", "2", "--scores").out
    assert scores.split("\n")[0].split() == ["conversation", "in-sample", "score", "gain"]


def test_an_unknown_candidate_is_refused_with_those_there_are(command, run: Run) -> None:
    said = command("candidates", run.id, "--show", "9")
    assert said.code == 1
    assert "It has 0 to 2." in said.err


def test_install_writes_the_best_and_says_who_sees_it(command, run: Run, stage: Stage) -> None:
    path = stage.settings.project_dir / ".claude" / "skills" / "polite-support" / "SKILL.md"
    said = command("install", run.id)
    assert said.code == 0
    assert f"Created {path} (candidate 2)." in said.out
    assert "Claude Code" in said.out
    assert path.read_text("utf-8").endswith("Ask first.")


def test_install_keeps_an_edited_file_until_forced_and_then_backs_it_up(
    command, run: Run, stage: Stage
) -> None:
    path = stage.settings.claude_config_dir / "skills" / "polite-support" / "SKILL.md"
    command("install", run.id, "--scope", "user")
    path.write_text(path.read_text("utf-8") + "\nMine.", "utf-8")
    refused = command("install", run.id, "--scope", "user", "--candidate", "1", "--json")
    assert refused.code == 1
    error = json.loads(refused.out)["error"]
    assert error["code"] == "install_conflict"
    assert "-Mine." in error["diff"]
    shown = command("install", run.id, "--scope", "user", "--candidate", "1")
    assert "-Mine." in shown.err
    assert "Mine." in path.read_text("utf-8")
    forced = json.loads(
        command("install", run.id, "--scope", "user", "--candidate", "1", "--force", "--json").out
    )
    assert forced["installed"][0]["action"] == "replaced"
    assert forced["installed"][0]["backup"]
    assert "Mine." not in path.read_text("utf-8")
