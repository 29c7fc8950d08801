"""From a scope to a folder."""

from pathlib import Path

import pytest

from stash_mcp.errors import InputError
from stash_mcp.settings import load_settings
from stash_mcp.skills.targets import AGENTS, resolve


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
