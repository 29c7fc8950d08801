"""Folders as people write them: what is meant, and what is refused."""

import os
from pathlib import Path

import pytest

from stash_mcp.errors import InputError
from stash_mcp.settings import Settings
from stash_mcp.skills.targets import readers, resolve, resolve_all
from stash_mcp.skills.written_paths import absolute


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    made = Settings(
        home=tmp_path / "data",
        project_dir=tmp_path / "project",
        claude_config_dir=tmp_path / "claude",
        user_home=tmp_path / "user",
    )
    made.project_dir.mkdir()
    return made


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("~root/sk", "another user's home"),
        ("~nobody", "another user's home"),
        ("$HOME/x", "a variable"),
        ("${HOME}/x", "a variable"),
        ("sub/$NAME/x", "a variable"),
        ("%USERPROFILE%\\x", "a variable"),
        ("file:///tmp/x", "a URL"),
        ("https://example.org/x", "a URL"),
        ("a/\0b", "a NUL"),
        ("./" + "x" * 300, "longer than"),
        ("/" + "x/" * 3000, "longer than"),
        ("./" + "é" * 200, "longer than"),
        ("\ud800/x", "no file's name"),
    ],
)
def test_what_is_no_path_here_is_refused_with_the_reason(
    settings: Settings, text: str, reason: str
) -> None:
    with pytest.raises(InputError, match=reason):
        resolve(settings, "project", text)
    assert list(settings.project_dir.iterdir()) == []


@pytest.mark.skipif(os.sep == "\\", reason="Windows reads these")
@pytest.mark.parametrize("text", ["C:\\skills", "c:/skills", ".\\skills", "\\\\box\\share"])
def test_a_path_of_windows_is_refused_elsewhere(settings: Settings, text: str) -> None:
    with pytest.raises(InputError, match="a path of Windows"):
        resolve(settings, "project", text)


@pytest.mark.parametrize("text", ["~", "~/a", "./a b", "a/price in $", "a/100%/b", "./a:b"])
def test_an_unusual_path_that_is_one_is_taken(settings: Settings, text: str) -> None:
    path = absolute(settings, text)
    base = settings.user_home if text.startswith("~") else settings.project_dir
    assert path == base / text.removeprefix("~").lstrip("/")


@pytest.mark.parametrize("inside", ["", "backups", "runs/x"])
def test_our_own_data_is_no_skills_folder(settings: Settings, inside: str) -> None:
    with pytest.raises(InputError, match="stash-skills' own data"):
        resolve_all(settings, "project", [str(settings.home / inside)])


def test_a_skills_folder_that_holds_our_own_data_is_refused(settings: Settings) -> None:
    folder = settings.project_dir / ".claude/skills"
    inside = Settings(
        home=folder / "data",
        project_dir=settings.project_dir,
        claude_config_dir=settings.claude_config_dir,
        user_home=settings.user_home,
    )
    with pytest.raises(InputError, match="Set STASH_MCP_HOME"):
        resolve_all(inside, "project", ["claude-code"])
    assert resolve_all(inside, "project", ["cursor"])


def test_all_agents_that_share_a_folder_read_its_skill(bench) -> None:
    def of(agent: str, scope="project"):
        target = resolve(bench.settings, scope, agent)
        return readers(bench.settings, bench.install(target=target).installation)

    assert of("claude-code") == ("claude-code",)
    assert of("amp") == ("amp", "codex", "agents")
    assert of("codex", "user") == ("codex", "agents")
    assert of("./mine") == ("folder",)
