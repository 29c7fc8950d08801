import json
from pathlib import Path

import pytest
from support.staging import Stage


@pytest.fixture
def cursor(stage: Stage) -> Path:
    """Cursor is in use, with a server of the person's own."""
    path = stage.settings.user_home / ".cursor" / "mcp.json"
    path.parent.mkdir(parents=True)
    path.write_text('{\n  "mcpServers": {\n    "mine": {"command": "x"}\n  }\n}\n', "utf-8")
    return path


def test_without_a_name_it_shows_what_it_would_do_and_writes_nothing(command, cursor: Path) -> None:
    before = cursor.read_bytes()
    said = command("setup")
    assert said.code == 0
    assert f"Cursor: to be added to {cursor}." in said.out
    assert '+    "stash-skills": {' in said.out
    assert "Nothing was written." in said.out
    assert "Gemini" not in said.out
    assert cursor.read_bytes() == before


def test_all_does_those_that_are_here_once(command, cursor: Path, stage: Stage) -> None:
    said = command("setup", "--all", "--json")
    [step] = json.loads(said.out)["steps"]
    assert (step["agent"], step["action"], step["path"]) == ("cursor", "added", str(cursor))
    assert Path(step["backup"]).is_relative_to(stage.settings.backups_dir)
    assert list(json.loads(cursor.read_bytes())["mcpServers"]) == ["mine", "stash-skills"]
    again = command("setup", "cursor", "--json")
    assert json.loads(again.out)["steps"][0]["action"] == "unchanged"
    command("setup", "cursor", "--remove")
    assert list(json.loads(cursor.read_bytes())["mcpServers"]) == ["mine"]


def test_a_dry_run_shows_the_diff_that_is_then_written(command, cursor: Path) -> None:
    shown = json.loads(command("setup", "cursor", "--dry-run", "--json").out)
    assert shown["dry_run"]
    before = cursor.read_text("utf-8")
    command("setup", "cursor")
    after = cursor.read_text("utf-8")
    added = [line[1:] for line in shown["steps"][0]["diff"].splitlines()[2:] if line[0] == "+"]
    assert after.splitlines() == [
        *before.splitlines()[:2],
        '    "mine": {"command": "x"},',
        *added[1:],
        *before.splitlines()[3:],
    ]


def test_the_entry_keeps_the_folder_of_the_data_and_works_from_anywhere(
    command, cursor: Path, stage: Stage
) -> None:
    command("setup", "cursor")
    entry = json.loads(cursor.read_bytes())["mcpServers"]["stash-skills"]
    assert entry["env"] == {"STASH_MCP_HOME": str(stage.settings.home)}
    assert Path(entry["command"]).is_absolute()
    assert entry["args"][-1] == "serve"


def test_what_is_refused_or_differs_makes_the_command_fail(command, cursor: Path) -> None:
    cursor.write_text('{"mcpServers": {"stash-skills": {"command": "/old"}}}', "utf-8")
    said = command("setup", "cursor")
    assert said.code == 1
    assert "--force replaces it" in said.out
    assert "/old" in said.out
    cursor.write_text("{\n\n oops", "utf-8")
    said = command("setup", "cursor", "gemini-cli")
    assert said.code == 1
    assert "line 3" in said.out
    assert "Gemini CLI: added" in said.out


def test_print_gives_every_entry_to_copy_and_writes_nothing(command, stage: Stage) -> None:
    said = command("setup", "--print")
    assert said.code == 0
    for words in ("claude mcp add --scope user", "[mcp_servers.stash-skills]", '"mcpServers"'):
        assert words in said.out
    assert not (stage.settings.user_home / ".codex").exists()
    [row] = json.loads(command("setup", "--print", "vscode", "--scope", "project", "--json").out)
    assert row["path"] == str(stage.settings.project_dir / ".vscode" / "mcp.json")
    assert json.loads(row["entry"])["servers"]["stash-skills"]["type"] == "stdio"


def test_project_scope_writes_into_the_project_and_says_that_it_is_shared(
    command, stage: Stage
) -> None:
    said = command("setup", "claude-code", "--scope", "project")
    file = stage.settings.project_dir / ".mcp.json"
    assert "stash-skills" in json.loads(file.read_bytes())["mcpServers"]
    assert (stage.settings.project_dir / ".claude" / "skills").is_dir()
    assert "a path of this machine" in said.out
    assert "/reload-skills" in said.out


def test_an_unknown_agent_is_refused_with_those_there_are(command) -> None:
    said = command("setup", "emacs")
    assert said.code == 1
    assert "claude-code, codex, cursor, gemini-cli, vscode, opencode" in said.err


def test_claude_code_without_its_command_is_not_set_up_and_the_exit_code_says_so(
    command, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    shown = command("setup", "claude-code", "--dry-run")
    assert shown.code == 0
    said = command("setup", "claude-code")
    assert said.code == 1
    assert "claude mcp add --scope user stash-skills" in said.out
