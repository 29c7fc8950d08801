"""What is to be done at each agent so that it starts our server, and doing it.

Everything is found out before anything is written. One agent's refusal stops no other.
"""

import difflib
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any, Literal

from stash_mcp.agents import claude, config_file, jsonc, toml
from stash_mcp.agents.config_file import ConfigFile
from stash_mcp.agents.entries import NAME, Entry, Server, merged, opencode_2
from stash_mcp.agents.surroundings import Which
from stash_mcp.agents.table import Agent, Scope, claude_file
from stash_mcp.agents.table import config_file as file_of
from stash_mcp.errors import StashSkillsError
from stash_mcp.settings import Settings, default_home
from stash_mcp.skills.targets import agent as skills_agent
from stash_mcp.skills.targets import resolve
from stash_mcp.storage.files import os_errors

Action = Literal[
    "added", "replaced", "removed", "unchanged", "absent", "differs", "by hand", "refused"
]
CHANGES: tuple[Action, ...] = ("added", "replaced", "removed")
FAILED: tuple[Action, ...] = ("differs", "refused")


@dataclass(frozen=True)
class Order:
    """remove: take our entry away. force: replace an entry of ours that says something else."""

    scope: Scope = "user"
    remove: bool = False
    force: bool = False


@dataclass(frozen=True)
class Step:
    """What is done, or would be, at one agent.

    action: `absent` where there is nothing to remove, `differs` where force is wanted, `by hand`
    where `line` is for the person to run. diff: of the file, or for Claude Code's user scope of the
    entry. problem: why it was refused. skills_dir: the skills folder that is made, if one is.
    """

    agent: Agent
    path: Path
    action: Action
    diff: str = ""
    line: str | None = None
    problem: str | None = None
    backup: Path | None = None
    skills_dir: Path | None = None
    _do: Callable[[datetime], Path | None] | None = None


@dataclass(frozen=True)
class Setup:
    """which: finds a program on the PATH."""

    settings: Settings
    server: Server
    which: Which = shutil.which

    def plan(self, rows: Sequence[Agent], order: Order) -> tuple[Step, ...]:
        """One step for each agent, in this order; writes nothing."""
        return tuple(self._planned(row, order) for row in rows)

    def do(self, step: Step, now: datetime) -> Step:
        """The step as it was done."""
        try:
            backup = step._do(now) if step._do else None
            if step.skills_dir is not None:
                _make_folder(step.skills_dir)
        except StashSkillsError as error:
            return replace(step, action="refused", problem=str(error), _do=None)
        return replace(step, backup=backup, _do=None)

    def snippet(self, row: Agent, scope: Scope) -> str:
        """What to put into the agent's file by hand, or the line that does it."""
        if row.by_command and scope == "user":
            return claude.line(claude.add_arguments(self.server)) + "\n"
        path = _entry_path(row, "")
        entry = row.shape(self.server)
        if row.format == "toml":
            return toml.put("", row.key, NAME, entry)
        return jsonc.put("", path, entry, comments=True)

    @property
    def _backups_dir(self) -> Path:
        return self.settings.backups_dir / "agents"

    def _planned(self, row: Agent, order: Order) -> Step:
        path = file_of(row, self.settings, order.scope)
        try:
            if row.by_command and order.scope == "user":
                step = self._by_command(row, order)
            else:
                step = self._in_file(row, path, order)
        except StashSkillsError as error:
            return Step(row, path, "refused", problem=str(error))
        if order.remove or step.action in FAILED:
            return step
        return replace(step, skills_dir=self._missing_skills_dir(row, order.scope))

    def _missing_skills_dir(self, row: Agent, scope: Scope) -> Path | None:
        """The skills folder, of an agent that only sees new skills in one that it found."""
        found = skills_agent(row.skills_agent)
        if found.seen_if_folder_existed == found.seen_if_folder_is_new:
            return None
        folder = resolve(self.settings, scope, row.skills_agent).skills_dir
        return None if folder.exists() else folder

    # --- in a file ---

    def _in_file(self, row: Agent, path: Path, order: Order) -> Step:
        file = config_file.read(path)
        present = self._present(row, file)
        if order.remove:
            if present is None:
                return Step(row, path, "absent")
            return self._written(row, file, "removed", lambda text: _without(row, text))
        wanted = self._wanted(row, file, present)
        if wanted == present:
            return Step(row, path, "unchanged")
        action: Action = "added" if present is None else "replaced"
        step = self._written(row, file, action, lambda text: _with(row, text, wanted))
        if present is not None and not order.force:
            return replace(step, action="differs", _do=None)
        return step

    def _written(
        self, row: Agent, file: ConfigFile, action: Action, edit: Callable[[str], str]
    ) -> Step:
        text = config_file.edited(file, edit)
        return Step(
            row,
            file.path,
            action,
            diff=file.diff(text),
            _do=lambda now: config_file.write(file, text, self._backups_dir, now),
        )

    def _present(self, row: Agent, file: ConfigFile) -> Any:
        """Our entry as it stands there; None where there is none."""
        found: list[Any] = []

        def look(text: str) -> str:
            found.append(_entry(row, text))
            return text

        config_file.edited(file, look)
        return found[0]

    def _wanted(self, row: Agent, file: ConfigFile, present: Any) -> Entry:
        two = row.key == "mcp" and len(_entry_path(row, file.text or "")) > 2
        shape = opencode_2 if two else row.shape
        return merged(present, shape(self.server))

    # --- by Claude Code's own command ---

    def _by_command(self, row: Agent, order: Order) -> Step:
        path = claude_file(self.settings)
        present = claude.present_entry(path)
        wanted = None if order.remove else merged(present, row.shape(self.server))
        if wanted == present:
            return Step(row, path, "absent" if order.remove else "unchanged")
        action: Action = "removed" if wanted is None else "replaced" if present else "added"
        removing = [] if present is None else [claude.remove_arguments()]
        # Variables that a person added to the entry are given again.
        environment = {} if wanted is None else wanted.get("env", {})
        adding = (
            []
            if wanted is None
            else [claude.add_arguments(replace(self.server, environment=environment))]
        )
        step = Step(row, path, action, diff=_entry_diff(path, present, wanted))
        if action == "replaced" and not order.force:
            return replace(step, action="differs")
        program = self.which("claude")
        if program is None:
            lines = [claude.line(arguments) for arguments in (*removing, *adding)]
            return replace(step, action="by hand", line="\n".join(lines))

        def do(now: datetime) -> Path | None:
            backup = None
            if present is not None:
                text = claude.as_text(present)
                backup = config_file.keep("claude-entry.json", text, self._backups_dir, now)
            for arguments in (*removing, *adding):
                claude.run(program, arguments, self.settings.user_home)
            return backup

        return replace(step, _do=do)


def server_of(settings: Settings, command: Sequence[str]) -> Server:
    """With the folder of our data, where it is not the usual one: agents do not all hand on the
    variable that named it.
    """
    moved = settings.home != default_home()
    return Server(command, {"STASH_MCP_HOME": str(settings.home)} if moved else {})


def _entry_path(row: Agent, text: str) -> tuple[str, ...]:
    """Where our entry stands in the file: OpenCode 2 has a level more, if the file has it too."""
    if row.key == "mcp" and text.strip():
        servers = jsonc.parse(text, comments=True).value.get("mcp")
        inner = servers.get("servers") if isinstance(servers, dict) else None
        if isinstance(inner, dict) and "type" not in inner:
            return row.key, "servers", NAME
    return row.key, NAME


def _entry(row: Agent, text: str) -> Any:
    if row.format == "toml":
        servers = toml.parse(text).get(row.key)
        return servers.get(NAME) if isinstance(servers, dict) else None
    if not text.strip():
        return None
    return jsonc.find(text, _entry_path(row, text), comments=row.format == "jsonc")


def _with(row: Agent, text: str, entry: Entry) -> str:
    if row.format == "toml":
        return toml.put(text, row.key, NAME, entry)
    comments = row.format == "jsonc"
    return jsonc.put(text, _entry_path(row, text), entry, comments=comments)


def _without(row: Agent, text: str) -> str:
    if row.format == "toml":
        return toml.take(text, row.key, NAME)
    return jsonc.take(text, _entry_path(row, text), comments=row.format == "jsonc")


def _entry_diff(path: Path, present: Any, wanted: Any) -> str:
    lines = difflib.unified_diff(
        claude.as_text(present).splitlines(keepends=True),
        claude.as_text(wanted).splitlines(keepends=True),
        fromfile=f"{path}: our entry",
        tofile=f"{path}: our entry (to be)",
        n=0,
    )
    return "".join(lines)


def _make_folder(folder: Path) -> None:
    with os_errors("make the folder", folder):
        folder.mkdir(parents=True, exist_ok=True)


def has_plugin(settings: Settings, row: Agent) -> bool:
    """Whether the agent has our plugin, which brings the entry."""
    if not row.by_command:
        return False
    project = settings.project_dir / ".claude"
    return claude.has_plugin(
        (
            settings.claude_config_dir / "settings.json",
            project / "settings.json",
            project / "settings.local.json",
        )
    )


def has_entry(settings: Settings, row: Agent, scope: Scope) -> bool:
    """Whether the agent's file has an entry of our name.

    StashSkillsError where it cannot be read.
    """
    path = file_of(row, settings, scope)
    if row.by_command and scope == "user":
        return claude.present_entry(path) is not None
    file = config_file.read(path)
    return _entry(row, file.text or "") is not None
