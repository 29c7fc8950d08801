"""From a scope to a folder."""

from dataclasses import replace
from pathlib import Path

import pytest

from stash_mcp.errors import InputError
from stash_mcp.settings import Settings, load_settings
from stash_mcp.skills.targets import AGENTS, is_used, resolve, resolve_all


def test_a_project_target_is_the_projects_folder_and_knows_which_folder_wins_over_it(
    tmp_path: Path,
) -> None:
    (tmp_path / "repo" / ".git").mkdir(parents=True)
    (tmp_path / "repo" / "src").mkdir()
    settings = load_settings({"CLAUDE_CONFIG_DIR": str(tmp_path / "c")}, tmp_path / "repo" / "src")
    target = resolve(settings, "project")
    assert target.skills_dir == tmp_path / "repo" / ".claude" / "skills"
    assert target.overriding_dir == tmp_path / "c" / "skills"
    assert (target.agent, target.scope) == ("claude-code", "project")


def test_a_user_target_is_in_claude_codes_configuration_folder(tmp_path: Path) -> None:
    settings = load_settings({"CLAUDE_CONFIG_DIR": str(tmp_path / "c")}, tmp_path)
    target = resolve(settings, "user")
    assert target.skills_dir == tmp_path / "c" / "skills"
    assert target.overriding_dir is None


def test_an_unknown_agent_is_refused_with_those_there_are(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"'hal' is not an agent.*claude-code"):
        resolve(load_settings({}, tmp_path), "user", "hal")


def test_every_agent_has_absolute_user_and_relative_project_folders(tmp_path: Path) -> None:
    settings = load_settings({}, tmp_path)
    for agent in AGENTS.values():
        assert agent.user_folder(settings).is_absolute()
        assert not Path(agent.project_folder).is_absolute()


@pytest.mark.parametrize(
    ("agent", "project", "user"),
    [
        ("claude-code", ".claude/skills", "claude/skills"),
        ("codex", ".agents/skills", "home/.agents/skills"),
        ("cursor", ".cursor/skills", "home/.cursor/skills"),
        ("gemini-cli", ".gemini/skills", "home/.gemini/skills"),
        ("copilot", ".github/skills", "home/.copilot/skills"),
        ("opencode", ".opencode/skills", "xdg/opencode/skills"),
        ("goose", ".goose/skills", "xdg/goose/skills"),
        ("amp", ".agents/skills", "xdg/agents/skills"),
        ("windsurf", ".windsurf/skills", "home/.codeium/windsurf/skills"),
        ("agents", ".agents/skills", "home/.agents/skills"),
    ],
)
def test_each_agent_has_its_folders(tmp_path: Path, agent: str, project: str, user: str) -> None:
    settings = Settings(
        home=tmp_path / "data",
        project_dir=tmp_path / "project",
        claude_config_dir=tmp_path / "claude",
        user_home=tmp_path / "home",
        xdg_config_home=tmp_path / "xdg",
    )
    assert resolve(settings, "project", agent).skills_dir == tmp_path / "project" / project
    assert resolve(settings, "user", agent).skills_dir == tmp_path / user
    without = replace(settings, xdg_config_home=None)
    assert resolve(without, "user", "goose").skills_dir == tmp_path / "home/.config/goose/skills"


def test_variables_move_the_agents_folders(tmp_path: Path) -> None:
    environ = {"XDG_CONFIG_HOME": str(tmp_path / "x"), "CODEX_HOME": "${CODEX_HOME}"}
    settings = load_settings(environ, tmp_path)
    assert settings.config_home == tmp_path / "x"
    assert settings.codex_home is None
    assert resolve(settings, "user", "opencode").skills_dir == tmp_path / "x/opencode/skills"


@pytest.mark.parametrize("text", ["./mine", "~/mine", "sub/mine", "..", "."])
def test_a_path_is_a_target_of_its_own(tmp_path: Path, text: str) -> None:
    project = tmp_path / "project"
    project.mkdir()
    settings = Settings(tmp_path / "data", project, tmp_path / "c", user_home=tmp_path / "home")
    target = resolve(settings, "user", text)
    wanted = {"./mine": project / "mine", "~/mine": tmp_path / "home/mine"}
    wanted |= {"sub/mine": project / "sub/mine", "..": tmp_path, ".": project}
    assert (target.agent, target.scope, target.skills_dir) == ("folder", "folder", wanted[text])


def test_naming_an_agent_twice_is_naming_it_once_and_none_is_refused(tmp_path: Path) -> None:
    settings = load_settings({}, tmp_path)
    assert len(resolve_all(settings, "project", ["codex", "codex", "amp"])) == 2
    with pytest.raises(InputError, match="No agent was named"):
        resolve_all(settings, "project", [])


def test_an_agent_seems_used_where_its_folder_is(tmp_path: Path) -> None:
    settings = Settings(
        tmp_path / "data", tmp_path / "p", tmp_path / "c", user_home=tmp_path / "home"
    )
    assert not any(is_used(agent, settings) for agent in AGENTS.values())
    (tmp_path / "home/.codex").mkdir(parents=True)
    (tmp_path / "p/.goose/skills").mkdir(parents=True)
    assert [row.id for row in AGENTS.values() if is_used(row, settings)] == ["codex", "goose"]
