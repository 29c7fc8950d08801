"""Where our data lives and where the person works."""

from pathlib import Path

import pytest
from platformdirs import user_data_path

from stash_mcp.errors import InputError
from stash_mcp.settings import (
    Settings,
    has_variables,
    load_settings,
    provider_keys,
    secret_values,
    worker_environment,
)


def load(working_dir: Path, **environ: str) -> Settings:
    return load_settings(environ, working_dir)


def test_without_variables_the_platforms_folders_are_used(tmp_path: Path) -> None:
    settings = load(tmp_path)
    assert settings.home == user_data_path("stash-skills", appauthor=False)
    assert settings.claude_config_dir == Path.home() / ".claude"


def test_variables_win(tmp_path: Path) -> None:
    home, project, config = (tmp_path / name for name in ("home", "project", "config"))
    settings = load(
        tmp_path,
        STASH_MCP_HOME=str(home),
        CLAUDE_PROJECT_DIR=str(project),
        CLAUDE_CONFIG_DIR=str(config),
    )
    assert settings == Settings(home=home, project_dir=project, claude_config_dir=config)


@pytest.mark.parametrize("value", ["", "  ", "${STASH_MCP_HOME}", "${STASH_MCP_HOME:-}"])
def test_blank_and_unexpanded_variables_count_as_unset(tmp_path: Path, value: str) -> None:
    assert load(tmp_path, STASH_MCP_HOME=value) == load(tmp_path)


def test_relative_paths_start_at_the_working_folder(tmp_path: Path) -> None:
    settings = load(tmp_path / "a", STASH_MCP_HOME="../data", CLAUDE_PROJECT_DIR=".")
    assert settings.home == tmp_path / "data"
    assert settings.project_dir == tmp_path / "a"


def test_a_tilde_is_the_persons_folder(tmp_path: Path) -> None:
    assert load(tmp_path, STASH_MCP_HOME="~/skills").home == Path.home() / "skills"


def test_the_project_is_the_repository_around_the_working_folder(tmp_path: Path) -> None:
    (tmp_path / "repository" / ".git").mkdir(parents=True)
    inside = tmp_path / "repository" / "src" / "deep"
    inside.mkdir(parents=True)
    assert load(inside).project_dir == tmp_path / "repository"


def test_what_the_project_was_taken_from_is_told(tmp_path: Path) -> None:
    assert "in no repository" in load(tmp_path).project_from
    assert "CLAUDE_PROJECT_DIR" in load(tmp_path, CLAUDE_PROJECT_DIR=".").project_from
    (tmp_path / ".git").mkdir()
    assert "root of the repository" in load(tmp_path).project_from


def test_the_file_of_a_git_worktree_marks_the_repository_too(tmp_path: Path) -> None:
    (tmp_path / "tree" / "src").mkdir(parents=True)
    (tmp_path / "tree" / ".git").write_text("gitdir: elsewhere\n")
    assert load(tmp_path / "tree" / "src").project_dir == tmp_path / "tree"


def test_everything_of_ours_lies_in_the_home(tmp_path: Path) -> None:
    settings = load(tmp_path, STASH_MCP_HOME=str(tmp_path / "home"))
    paths = [
        settings.library_path,
        settings.runs_dir,
        settings.reward_models_dir,
        settings.backups_dir,
        settings.worker_lock_path,
    ]
    assert [path.parent for path in paths] == [settings.home] * 5
    assert len(set(paths)) == 5
    assert not settings.home.exists()


def test_values_named_like_secrets_are_found_for_masking() -> None:
    environ = {
        "OPENAI_API_KEY": "sk-12345678",
        "hf_token": "hf_abcdefgh",
        "AWS_CREDENTIALS": "credentials",
        "SHORT_KEY": "abc",
        "KEYBOARD": "qwertzuiop",
        "HOME": "/home/somebody",
    }
    assert set(secret_values(environ)) == {"sk-12345678", "hf_abcdefgh", "credentials"}


def test_the_worker_gets_our_environment_and_quiet_libraries() -> None:
    environment = worker_environment({"OPENAI_API_KEY": "sk-12345678", "PYTHONUTF8": "0"})
    assert environment["OPENAI_API_KEY"] == "sk-12345678"
    assert environment["PYTHONUTF8"] == "1"
    assert environment["HF_HUB_DISABLE_TELEMETRY"] == "1"


def test_what_the_person_set_for_the_worker_stays() -> None:
    environment = worker_environment({"TOKENIZERS_PARALLELISM": "true"})
    assert environment["TOKENIZERS_PARALLELISM"] == "true"


def test_only_the_keys_that_are_there_are_named() -> None:
    environ = {"OPENAI_API_KEY": "sk-x", "ANTHROPIC_API_KEY": "", "GITHUB_TOKEN": "t"}
    models = ("openai/gpt-5", "anthropic/claude-x", "builtin/comments", "plain")
    assert provider_keys(models, environ) == ("OPENAI_API_KEY",)
    assert has_variables(["OPENAI_API_KEY"], environ)
    assert not has_variables(["OPENAI_API_KEY", "ANTHROPIC_API_KEY"], environ)


@pytest.mark.parametrize("value", ["${CLAUDE_PLUGIN_DATA}/skills", "~no-such-user-here/x"])
def test_a_folder_that_was_not_filled_in_is_refused_by_name(value: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="STASH_MCP_HOME is"):
        load_settings({"STASH_MCP_HOME": value}, tmp_path)


@pytest.mark.parametrize("value", ["auto", "ask", "off"])
def test_the_default_of_installing_comes_from_the_environment(value: str, tmp_path: Path) -> None:
    assert load_settings({"STASH_MCP_INSTALL": value}, tmp_path).install_mode == value


def test_an_unknown_way_of_installing_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="auto, ask or off"):
        load_settings({"STASH_MCP_INSTALL": "maybe"}, tmp_path)


@pytest.mark.parametrize("value", ["", "  ", "${OPENAI_API_KEY}"])
def test_a_key_that_was_not_filled_in_does_not_reach_the_worker(value: str) -> None:
    environ = {"OPENAI_API_KEY": value, "PATH": "/bin"}
    assert "OPENAI_API_KEY" not in worker_environment(environ)
    assert worker_environment(environ)["PATH"] == "/bin"
    assert provider_keys(["openai/x"], environ) == ()
    assert worker_environment({"OPENAI_API_KEY": " sk-1\n"})["OPENAI_API_KEY"] == "sk-1"
