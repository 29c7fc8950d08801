"""The agents on this machine: their skills folders, and whether they know our server."""

import os
from pathlib import Path

from stash_mcp.agents.setup import has_entry, has_plugin
from stash_mcp.agents.table import AGENTS, Agent, Scope, is_here
from stash_mcp.doctor.report import Check, not_checked, ok, problem, warning
from stash_mcp.errors import StashSkillsError
from stash_mcp.settings import Settings
from stash_mcp.skills import targets

_SCOPES: tuple[Scope, ...] = ("user", "project")


def set_up(settings: Settings) -> Check:
    """Which of the agents that are here have an entry of ours."""
    here = [row for row in AGENTS.values() if is_here(row, settings)]
    if not here:
        return not_checked("agents", "None of the agents that setup knows was found here.")
    known: list[str] = []
    unknown: list[Agent] = []
    unread: list[str] = []
    for row in here:
        try:
            if any(has_entry(settings, row, scope) for scope in _SCOPES):
                known.append(row.title)
            elif has_plugin(settings, row):
                known.append(f"{row.title} (by the plugin)")
            else:
                unknown.append(row)
        except StashSkillsError as error:
            unread.append(str(error))
    said = [f"Set up: {', '.join(known) or 'none'}."]
    if unknown:
        said.append(f"Found without an entry: {', '.join(row.title for row in unknown)}.")
    if unread:
        return warning("agents", " ".join([*said, *unread]), "Correct that file.")
    fix = f"stash-skills setup {' '.join(row.id for row in unknown)}" if unknown else None
    return ok("agents", " ".join(said), fix)


def skills_folders(settings: Settings) -> Check:
    """Whether skills can be written for the agents in use, and seen by a running Claude Code."""
    name = "skills folders"
    used = [row for row in targets.AGENTS.values() if targets.is_used(row, settings)]
    folders = {
        targets.resolve(settings, scope, row.id).skills_dir: None
        for row in used
        for scope in _SCOPES
    }
    closed = [str(folder) for folder in folders if not _writable(folder)]
    if closed:
        return problem(name, f"Cannot be written: {', '.join(closed)}.", "Correct the permissions.")
    claude = targets.resolve(settings, "user", targets.DEFAULT_AGENT).skills_dir
    if not claude.is_dir() and settings.claude_config_dir.is_dir():
        return warning(
            name,
            f"{claude} is not there: a running Claude Code session would not see a new skill.",
            "stash-skills setup claude-code makes it.",
        )
    if not folders:
        return ok(
            name, "No agent's folder was found here; they are made when a skill is installed."
        )
    return ok(name, f"{len(folders)} folders of {len(used)} agents can be written.")


def _writable(folder: Path) -> bool:
    there = next(path for path in (folder, *folder.parents) if path.exists())
    return there.is_dir() and os.access(there, os.W_OK | os.X_OK)
