"""Claude Code's user scope, through a stand-in for its command that keeps a file as it does."""

import json
import stat
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from stash_mcp.agents.table import claude_file
from stash_mcp.settings import Settings, load_settings

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the stand-in is a script")

STAND_IN = """\
#!{python}
import json, pathlib, sys
path = pathlib.Path({path!r})
content = json.loads(path.read_text()) if path.exists() else {{}}
servers = content.setdefault("mcpServers", {{}})
words = sys.argv[1:]
assert words[0] == "mcp" and words[2:4] == ["--scope", "user"], words
action, name, rest = words[1], words[4], words[5:]
if action == "remove":
    if name not in servers:
        sys.exit("No MCP server named " + name)
    del servers[name]
else:
    if name in servers:
        sys.exit("MCP server " + name + " already exists in user config")
    command = rest[rest.index("--") + 1:]
    variables = [row for row in rest[: rest.index("--")] if row != "-e"]
    servers[name] = {{"type": "stdio", "command": command[0], "args": command[1:],
                      "env": dict(row.split("=", 1) for row in variables)}}
path.write_text(json.dumps(content))
"""


@pytest.fixture
def claude(desk, tmp_path: Path) -> Path:
    """The file that the stand-in keeps."""
    file = desk.settings.user_home / ".claude.json"
    script = tmp_path / "claude"
    script.write_text(STAND_IN.format(python=sys.executable, path=str(file)), "utf-8")
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    desk.programs["claude"] = str(script)
    return file


def entry(file: Path):
    return json.loads(file.read_text())["mcpServers"].get("stash-skills")


def test_the_entry_is_added_once_and_removed_by_its_own_command(desk, claude: Path) -> None:
    claude.write_text('{"numStartups": 7, "mcpServers": {"other": {"command": "x"}}}')
    assert desk.do("claude-code").action == "added"
    assert entry(claude)["command"] == "/opt/env/bin/stash-skills"
    assert desk.do("claude-code").action == "unchanged"
    assert desk.do("claude-code", remove=True).action == "removed"
    kept = {"numStartups": 7, "mcpServers": {"other": {"command": "x"}}}
    assert json.loads(claude.read_text()) == kept
    assert desk.do("claude-code", remove=True).action == "absent"


def test_a_different_entry_is_replaced_by_force_with_what_a_person_added(
    desk, claude: Path
) -> None:
    old = {"type": "stdio", "command": "/old", "args": ["serve"], "env": {"MINE": "a=b"}}
    claude.write_text(json.dumps({"mcpServers": {"stash-skills": old}}))
    shown = desk.do("claude-code")
    assert (shown.action, "/old" in shown.diff) == ("differs", True)
    assert entry(claude) == old
    forced = desk.do("claude-code", force=True)
    assert forced.action == "replaced"
    assert json.loads(forced.backup.read_text()) == {"stash-skills": old}
    assert entry(claude)["command"] == "/opt/env/bin/stash-skills"
    assert entry(claude)["env"] == {"MINE": "a=b"}


def test_without_the_command_the_line_to_run_is_given(desk) -> None:
    step = desk.do("claude-code")
    assert step.action == "by hand"
    assert step.line == (
        "claude mcp add --scope user stash-skills -- /opt/env/bin/stash-skills serve"
    )
    assert not (desk.settings.user_home / ".claude.json").exists()


def test_what_the_command_says_when_it_fails_is_told(desk, claude: Path) -> None:
    claude.write_text("{}")
    step = desk.plan("claude-code")
    claude.write_text('{"mcpServers": {"stash-skills": {}}}')
    done = desk.carry_out(step)
    assert done.action == "refused"
    assert "already exists in user config" in done.problem


def test_a_broken_file_of_claude_code_is_not_touched(desk, claude: Path) -> None:
    claude.write_text("{oops")
    assert "cannot be read as JSON" in desk.do("claude-code").problem
    assert claude.read_text() == "{oops"


def test_the_skills_folder_is_made_as_a_session_only_watches_one_that_it_found(
    desk, claude: Path
) -> None:
    folder = desk.settings.claude_config_dir / "skills"
    assert desk.plan("claude-code").skills_dir == folder
    assert not folder.exists()
    assert desk.do("claude-code").skills_dir == folder
    assert folder.is_dir()
    assert desk.do("claude-code").skills_dir is None
    in_project = desk.do("claude-code", scope="project")
    assert in_project.skills_dir == desk.settings.project_dir / ".claude" / "skills"
    assert in_project.skills_dir.is_dir()


def test_the_file_of_user_scope_is_where_the_variable_says_be_it_the_usual_folder(
    tmp_path: Path,
) -> None:
    usual = tmp_path / ".claude"
    plain = Settings(tmp_path / "h", tmp_path / "p", usual, user_home=tmp_path)
    assert claude_file(plain) == tmp_path / ".claude.json"
    assert claude_file(replace(plain, claude_config_named=True)) == usual / ".claude.json"
    moved = replace(plain, claude_config_dir=tmp_path / "other")
    assert claude_file(moved) == tmp_path / "other" / ".claude.json"
    assert load_settings({"CLAUDE_CONFIG_DIR": str(usual)}, tmp_path).claude_config_named
    assert not load_settings({"CLAUDE_CONFIG_DIR": ""}, tmp_path).claude_config_named
