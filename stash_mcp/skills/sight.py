"""Whether an agent sees a skill that was written: now, after a restart, or hidden by another.

Claude Code watches the skills folders that were there when its session began. Our server is started
with that session, so what is there when the server starts is what the session watches.
"""

import os
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from stash_mcp.settings import Settings
from stash_mcp.skills.place import SKILL_FILE
from stash_mcp.skills.targets import AGENTS, Target, resolve, visibility


@dataclass(frozen=True)
class AgentSession:
    """folders: real paths of the skills folders that were there when it began."""

    began_at: datetime
    folders: frozenset[Path]


def session_from_now(settings: Settings, now: datetime) -> AgentSession:
    """The session that begins as this is called."""
    targets = (resolve(settings, scope, row) for row in AGENTS for scope in ("project", "user"))
    folders = (target.skills_dir for target in targets)
    return AgentSession(now, frozenset(_real(path) for path in folders if path.is_dir()))


def sight(target: Target, name: str, *, folder_existed: bool | None) -> str:
    """Of the skill `name`, just written; folder_existed as in `targets.visibility`."""
    seen = visibility(target, folder_existed=folder_existed)
    return f"{seen}{_hidden(target, name)}"


def sight_in(session: AgentSession | None, target: Target, name: str, written_at: datetime) -> str:
    """The same for whoever is told in this session, or at a command, which is in none."""
    if session is None:
        return sight(target, name, folder_existed=None)
    if written_at < session.began_at:
        return (
            "It was there before this session began, so nothing has to be restarted for it."
            f"{_hidden(target, name)}"
        )
    return sight(target, name, folder_existed=_real(target.skills_dir) in session.folders)


def _hidden(target: Target, name: str) -> str:
    if target.overriding_dir is None:
        return ""
    other = target.overriding_dir / name / SKILL_FILE
    return f" But {other}, a personal skill of the same name, hides it." if other.exists() else ""


def _real(path: Path) -> Path:
    return Path(os.path.realpath(path))
