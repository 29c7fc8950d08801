"""Where agents look for skills: one table, and the way from a scope or a path to a folder.

The folders are those that the agents document. How Claude Code notices a new skill was tried out;
of the others no more is promised than that they read their folder when they start.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from stash_mcp.errors import InputError
from stash_mcp.models import Installation
from stash_mcp.settings import Settings
from stash_mcp.skills.written_paths import absolute, is_path, refuse_our_own
from stash_mcp.storage.files import os_errors

Scope = Literal["project", "user"]

DEFAULT_AGENT = "claude-code"
FOLDER: Final = "folder"
"""The agent and the scope of a target that was given as a path."""


@dataclass(frozen=True)
class Agent:
    """An agent's skills folders and when it notices a new skill in them."""

    id: str
    title: str
    project_folder: str
    """Relative to the project, with `/`."""
    user_folder: Callable[[Settings], Path]
    home: Callable[[Settings], Path]
    """A folder that is there where the agent is in use."""
    user_wins: bool = False
    """Whether a user's skill hides a project's one of the same name."""
    seen_if_folder_existed: str = ""
    seen_if_folder_is_new: str = ""
    seen_if_not_known: str = ""


@dataclass(frozen=True)
class Target:
    """A skills folder of one agent.

    skills_dir: absolute; it need not exist. overriding_dir: the skills folder, if any, whose skill
    hides one of the same name in `skills_dir`.
    """

    agent: str
    scope: Literal["project", "user", "folder"]
    skills_dir: Path
    overriding_dir: Path | None = None


def _agent(
    id: str,
    title: str,
    project_folder: str,
    user: Callable[[Settings], Path],
    home: Callable[[Settings], Path] | None = None,
) -> Agent:
    """home: default: the folder above `user`."""
    seen = f"{title} reads its skills when it starts; restart it if it is running."
    return Agent(
        id=id,
        title=title,
        project_folder=project_folder,
        user_folder=user,
        home=home or (lambda settings: user(settings).parent),
        seen_if_folder_existed=seen,
        seen_if_folder_is_new=seen,
        seen_if_not_known=seen,
    )


_COMMON = ".agents/skills"

AGENTS: dict[str, Agent] = {
    agent.id: agent
    for agent in (
        Agent(
            id="claude-code",
            title="Claude Code",
            project_folder=".claude/skills",
            user_folder=lambda settings: settings.claude_config_dir / "skills",
            home=lambda settings: settings.claude_config_dir,
            user_wins=True,
            seen_if_folder_existed="A running Claude Code picks it up within a few seconds.",
            seen_if_folder_is_new=(
                "The skills folder is new, so a Claude Code that was running before does not see "
                "it until it is restarted or told `/reload-skills`."
            ),
            seen_if_not_known=(
                "A running Claude Code sees it if the skills folder was there when that session "
                "began; else it has to be restarted or told `/reload-skills`."
            ),
        ),
        Agent(
            id="codex",
            title="Codex",
            project_folder=_COMMON,
            user_folder=lambda settings: settings.user_home / _COMMON,
            # `skills` in CODEX_HOME is its older folder, which it still reads.
            home=lambda settings: settings.codex_home or settings.user_home / ".codex",
            seen_if_folder_existed="Codex reads its skills when it starts.",
            seen_if_folder_is_new="Codex reads its skills when it starts.",
            seen_if_not_known="Codex reads its skills when it starts.",
        ),
        _agent("cursor", "Cursor", ".cursor/skills", lambda s: s.user_home / ".cursor/skills"),
        _agent(
            "gemini-cli", "Gemini CLI", ".gemini/skills", lambda s: s.user_home / ".gemini/skills"
        ),
        _agent(
            "copilot", "GitHub Copilot", ".github/skills", lambda s: s.user_home / ".copilot/skills"
        ),
        _agent(
            "opencode", "OpenCode", ".opencode/skills", lambda s: s.config_home / "opencode/skills"
        ),
        _agent("goose", "Goose", ".goose/skills", lambda s: s.config_home / "goose/skills"),
        _agent(
            "amp",
            "Amp",
            _COMMON,
            lambda s: s.config_home / "agents/skills",
            lambda s: s.config_home / "amp",
        ),
        _agent(
            "windsurf",
            "Windsurf",
            ".windsurf/skills",
            lambda s: s.user_home / ".codeium/windsurf/skills",
        ),
        _agent(
            "agents",
            "Agents that share .agents/skills (Cline, Zed, Warp and others)",
            _COMMON,
            lambda s: s.user_home / _COMMON,
        ),
    )
}


def agent(agent_id: str) -> Agent:
    found = AGENTS.get(agent_id)
    if found is None:
        raise InputError(
            f"'{agent_id}' is not an agent that skills can be installed for.",
            f"Choose one of: {', '.join(sorted(AGENTS))}; or give a folder's path, such as "
            f"'./{agent_id}'.",
        )
    return found


def resolve(settings: Settings, scope: Scope, agent_id: str = DEFAULT_AGENT) -> Target:
    """The folder that the agent reads at this scope. `agent_id` may be a folder's path as well:
    something with a `/` in it, or that begins with `~` or `.`; a relative one starts at the
    project.
    """
    if is_path(agent_id):
        return _folder(settings, agent_id)
    row = agent(agent_id)
    user_dir = row.user_folder(settings)
    if scope == "user":
        return Target(row.id, scope, user_dir)
    project_dir = settings.project_dir / row.project_folder
    return Target(row.id, scope, project_dir, user_dir if row.user_wins else None)


def resolve_all(settings: Settings, scope: Scope, agent_ids: Sequence[str]) -> tuple[Target, ...]:
    """One target for each agent, in this order; of agents that share a folder, each its own."""
    if not agent_ids:
        raise InputError(
            "No agent was named to install the skill for.",
            f"Name one or more of: {', '.join(sorted(AGENTS))}; or a folder's path.",
        )
    targets = tuple(resolve(settings, scope, agent_id) for agent_id in dict.fromkeys(agent_ids))
    for target in targets:
        refuse_our_own(settings, target.skills_dir)
    return targets


def readers(settings: Settings, installation: Installation) -> tuple[str, ...]:
    """The agents that read this file, by the table: several share a folder."""
    target = target_of(settings, installation)
    project = project_of(target)
    if target.agent not in AGENTS:
        return (installation.agent,)
    folders = {
        row.id: project / row.project_folder if project else row.user_folder(settings)
        for row in AGENTS.values()
    }
    shared = [id for id, folder in folders.items() if folder == folders[target.agent]]
    return (target.agent, *(id for id in shared if id != target.agent))


def is_used(row: Agent, settings: Settings) -> bool:
    """Whether this agent seems to be used here: its own folder is there, or the project's one."""
    in_project = settings.project_dir / row.project_folder
    return row.home(settings).is_dir() or in_project.is_dir()


def visibility(target: Target, *, folder_existed: bool | None) -> str:
    """Whether a running agent sees a skill that was just written, in a sentence.

    folder_existed: whether the skills folder was there when the agent's session began; None where
    that is not known.
    """
    if target.agent not in AGENTS:
        return "Whether an agent reads this folder is not known here."
    row = agent(target.agent)
    if folder_existed is None:
        return row.seen_if_not_known
    return row.seen_if_folder_existed if folder_existed else row.seen_if_folder_is_new


def _folder(settings: Settings, text: str) -> Target:
    path = absolute(settings, text)
    starts_at_project = not (text.startswith("~") or Path(text).is_absolute())
    if starts_at_project and not settings.project_dir.is_dir():
        raise InputError(
            f"'{text}' starts at the project, and there is no project folder "
            f"{settings.project_dir}.",
            "Correct CLAUDE_PROJECT_DIR, or give the folder's whole path.",
        )
    with os_errors("look into", path):
        is_one_skill = (path / "SKILL.md").exists()
    if is_one_skill:
        raise InputError(
            f"{path} is the folder of one skill, since it holds a SKILL.md.",
            "Name the skills folder above it; the skill gets a folder of its own in there.",
        )
    return Target(FOLDER, FOLDER, path)


def target_of(settings: Settings, installation: Installation) -> Target:
    """Where something was installed before."""
    skills_dir = Path(installation.path).parent.parent
    return known_target(settings, installation.agent, installation.scope, skills_dir)


def known_target(
    settings: Settings,
    agent_id: str,
    scope: Literal["project", "user", "folder"],
    skills_dir: Path,
) -> Target:
    """A target that was resolved before, perhaps for another project than the present one."""
    row = AGENTS.get(agent_id)
    hides = row is not None and row.user_wins and scope == "project"
    overriding = row.user_folder(settings) if row is not None and hides else None
    return Target(agent_id, scope, skills_dir, overriding)


def project_of(target: Target) -> Path | None:
    """The folder of the project whose target this is; None for one that is of no project."""
    row = AGENTS.get(target.agent)
    if row is None or target.scope != "project":
        return None
    return target.skills_dir.parents[row.project_folder.count("/")]
