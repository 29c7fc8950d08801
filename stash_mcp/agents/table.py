"""The agents that can be set up: one table of their files, keys and shapes.

As the agents document them; Claude Code at user scope was tried out and is done by its own
command, since the running program rewrites that file all the time.
"""

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from stash_mcp.agents.entries import Shape, codex, gemini, opencode, plain, typed
from stash_mcp.errors import InputError
from stash_mcp.settings import Settings

Scope = Literal["project", "user"]
Format = Literal["json", "jsonc", "toml"]
"""json: an agent that reads no comments; jsonc: one that does."""

Files = Callable[[Settings], Sequence[Path]]


@dataclass(frozen=True)
class Agent:
    """user_files, project_files: absolute; the first one that exists is the one to edit, else the
    first. key: where the servers stand in it. skills_agent: its name among the skills' targets.
    home: a folder that is there where the agent is in use. note: what a person should know.
    """

    id: str
    title: str
    format: Format
    key: str
    shape: Shape
    user_files: Files
    project_files: Files
    home: Callable[[Settings], Path]
    skills_agent: str
    note: str = ""
    project_note: str = ""
    by_command: bool = field(default=False)
    """Whether its user file is left to its own command."""


def _one(path: Callable[[Settings], Path]) -> Files:
    return lambda settings: (path(settings),)


def _in_project(*names: str) -> Files:
    return lambda settings: tuple(settings.project_dir / name for name in names)


def claude_file(settings: Settings) -> Path:
    """Where Claude Code keeps the servers of user scope: in the folder that CLAUDE_CONFIG_DIR
    names, be it the usual one, and without it beside that.
    """
    beside = settings.user_home / ".claude.json"
    inside = settings.claude_config_dir / ".claude.json"
    usual = settings.claude_config_dir == settings.user_home / ".claude"
    moved = settings.claude_config_named or not usual
    return inside if moved or inside.exists() else beside


def _codex_home(settings: Settings) -> Path:
    return settings.codex_home or settings.user_home / ".codex"


def vscode_user_folder(settings: Settings, platform: str = sys.platform) -> Path:
    """Of the default profile; other profiles have folders of their own."""
    if platform == "win32":
        base = settings.user_home / "AppData" / "Roaming"
    elif platform == "darwin":
        base = settings.user_home / "Library" / "Application Support"
    else:
        base = settings.config_home
    return base / "Code" / "User"


def _opencode_files(settings: Settings) -> tuple[Path, ...]:
    folder = settings.config_home / "opencode"
    return folder / "opencode.json", folder / "opencode.jsonc"


AGENTS: dict[str, Agent] = {
    agent.id: agent
    for agent in (
        Agent(
            id="claude-code",
            title="Claude Code",
            format="json",
            key="mcpServers",
            shape=typed,
            user_files=_one(claude_file),
            project_files=_in_project(".mcp.json"),
            home=lambda settings: settings.claude_config_dir,
            skills_agent="claude-code",
            note="Restart Claude Code; /mcp shows whether it is connected.",
            project_note="Claude Code asks once whether it may use this project's servers.",
            by_command=True,
        ),
        Agent(
            id="codex",
            title="Codex",
            format="toml",
            key="mcp_servers",
            shape=codex,
            user_files=_one(lambda settings: _codex_home(settings) / "config.toml"),
            project_files=_in_project(".codex/config.toml"),
            home=_codex_home,
            skills_agent="codex",
            note="Restart Codex; /mcp shows its servers. It hands on only the variables that "
            "env_vars names: add the key of your provider if it is not there.",
            project_note="Codex reads it only in a project that you have marked as trusted.",
        ),
        Agent(
            id="cursor",
            title="Cursor",
            format="jsonc",
            key="mcpServers",
            shape=plain,
            user_files=_one(lambda settings: settings.user_home / ".cursor" / "mcp.json"),
            project_files=_in_project(".cursor/mcp.json"),
            home=lambda settings: settings.user_home / ".cursor",
            skills_agent="cursor",
            note="Restart Cursor and switch the server on in its settings.",
        ),
        Agent(
            id="gemini-cli",
            title="Gemini CLI",
            format="jsonc",
            key="mcpServers",
            shape=gemini,
            user_files=_one(lambda settings: settings.user_home / ".gemini" / "settings.json"),
            project_files=_in_project(".gemini/settings.json"),
            home=lambda settings: settings.user_home / ".gemini",
            skills_agent="gemini-cli",
            note="Restart Gemini CLI; /mcp shows its servers. It hands on only the keys that env "
            "names: add that of your provider if it is not there.",
        ),
        Agent(
            id="vscode",
            title="VS Code",
            format="jsonc",
            key="servers",
            shape=typed,
            user_files=_one(lambda settings: vscode_user_folder(settings) / "mcp.json"),
            project_files=_in_project(".vscode/mcp.json"),
            home=vscode_user_folder,
            skills_agent="copilot",
            note="VS Code asks whether it may start the server (MCP: List Servers).",
        ),
        Agent(
            id="opencode",
            title="OpenCode",
            format="jsonc",
            key="mcp",
            shape=opencode,
            user_files=_opencode_files,
            project_files=_in_project(
                "opencode.json",
                "opencode.jsonc",
                ".opencode/opencode.json",
                ".opencode/opencode.jsonc",
            ),
            home=lambda settings: settings.config_home / "opencode",
            skills_agent="opencode",
            note="Restart OpenCode; `opencode mcp list` shows its servers.",
        ),
    )
}


def agent(agent_id: str) -> Agent:
    found = AGENTS.get(agent_id)
    if found is None:
        raise InputError(
            f"'{agent_id}' is not an agent that can be set up.",
            f"Choose of: {', '.join(AGENTS)}; for another one, --print shows the entry to copy.",
        )
    return found


def is_here(row: Agent, settings: Settings) -> bool:
    """Whether this agent seems to be in use on this machine."""
    return row.home(settings).is_dir() or any(file.exists() for file in row.user_files(settings))


def config_file(row: Agent, settings: Settings, scope: Scope) -> Path:
    """The file to edit."""
    files = (row.project_files if scope == "project" else row.user_files)(settings)
    return next((file for file in files if file.exists() or file.is_symlink()), files[0])
