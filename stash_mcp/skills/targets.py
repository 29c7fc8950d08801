"""Where agents look for skills: one table, and the way from a scope to a folder.

Covered: Claude Code. Another agent is one more row of `AGENTS`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from stash_mcp.errors import InputError
from stash_mcp.settings import Settings

Scope = Literal["project", "user"]

DEFAULT_AGENT = "claude-code"


@dataclass(frozen=True)
class Agent:
    """An agent's skills folders and when it notices a new skill in them."""

    id: str
    title: str
    project_folder: str
    """Relative to the project, with `/`."""
    user_folder: Callable[[Settings], Path]
    user_wins: bool
    """Whether a user's skill hides a project's one of the same name."""
    seen_if_folder_existed: str
    seen_if_folder_is_new: str


@dataclass(frozen=True)
class Target:
    """A skills folder of one agent.

    skills_dir: absolute; it need not exist. overriding_dir: the skills folder, if any, whose skill
    hides one of the same name in `skills_dir`.
    """

    agent: str
    scope: Scope
    skills_dir: Path
    overriding_dir: Path | None = None


AGENTS: dict[str, Agent] = {
    agent.id: agent
    for agent in (
        Agent(
            id="claude-code",
            title="Claude Code",
            project_folder=".claude/skills",
            user_folder=lambda settings: settings.claude_config_dir / "skills",
            user_wins=True,
            seen_if_folder_existed="A running Claude Code picks it up within a few seconds.",
            seen_if_folder_is_new=(
                "The skills folder was made just now, so a running Claude Code does not see it "
                "until it is restarted or told `/reload-skills`."
            ),
        ),
    )
}


def agent(agent_id: str) -> Agent:
    found = AGENTS.get(agent_id)
    if found is None:
        raise InputError(
            f"'{agent_id}' is not an agent that skills can be installed for.",
            f"Choose one of: {', '.join(sorted(AGENTS))}.",
        )
    return found


def resolve(settings: Settings, scope: Scope, agent_id: str = DEFAULT_AGENT) -> Target:
    """The folder that the agent reads at this scope."""
    row = agent(agent_id)
    user_dir = row.user_folder(settings)
    if scope == "user":
        return Target(row.id, scope, user_dir)
    project_dir = settings.project_dir / row.project_folder
    return Target(row.id, scope, project_dir, user_dir if row.user_wins else None)
