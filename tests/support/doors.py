"""The two doors to a library, an MCP client's tool call and the command, and what lies behind."""

import hashlib
import json
import sqlite3
import sys
from collections.abc import Callable, Iterable, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from mcp.types import TextContent

from stash_mcp.cli.main import main
from stash_mcp.cli.session import Session
from stash_mcp.server.app import build_server
from stash_mcp.settings import Settings
from support.staging import Stage

MODEL, RUN = "rm-1", "run-2"
"""Ids in the library of `furnish`."""
# A database is compared by its rows; locks come and go.
_NOT_COMPARED = (".db", ".db-wal", ".db-shm", ".lock")
_LONGEST_MESSAGE = 3000


@dataclass(frozen=True)
class Outcome:
    code: int
    out: str
    err: str


class Doors:
    """Both doors of one stage's backend. `session.sleep` is what a following command calls."""

    def __init__(self, stage: Stage, capsys: pytest.CaptureFixture[str]) -> None:
        self.stage = stage
        self.session = Session(
            settings=stage.settings,
            open_backend=lambda _settings: stage.backend,
            clock=stage.clock,
            sleep=lambda _seconds: None,
        )
        self._capsys = capsys

    async def call(self, tool: str, **arguments: object) -> tuple[bool, str]:
        """Whether the tool's answer is an error, and its text."""
        stage = self.stage
        server = build_server(
            lambda: stage.backend, stage.settings.project_dir, clock=stage.clock, poll_seconds=0.01
        )
        async with Client(server) as client:
            answer = await client.call_tool(tool, arguments)
        [block] = answer.content
        assert isinstance(block, TextContent)
        return bool(answer.is_error), block.text

    def command(self, *arguments: str) -> Outcome:
        self._capsys.readouterr()
        code = main(arguments, self.session)
        sys.stdout.flush()
        caught = self._capsys.readouterr()
        return Outcome(code, caught.out, caught.err)


# --- what is kept ---


def content(settings: Settings) -> dict[str, str]:
    """Everything that is kept: the library's rows, and each file of our folder, of the project and
    of the agent's settings.
    """
    found = {"library": _rows(settings.library_path)}
    for folder in (settings.home, settings.project_dir, settings.claude_config_dir):
        for path in sorted(folder.rglob("*")):
            if not path.name.endswith(_NOT_COMPARED):
                found[str(path)] = _digest(path)
    return found


def is_sound(settings: Settings) -> bool:
    with closing(sqlite3.connect(settings.library_path)) as connection:
        checked = connection.execute("PRAGMA integrity_check").fetchall()
        broken_links = connection.execute("PRAGMA foreign_key_check").fetchall()
    return checked == [("ok",)] and broken_links == []


def _rows(library: Path) -> str:
    with closing(sqlite3.connect(library)) as connection:
        dump = "\n".join(connection.iterdump())
    return hashlib.sha256(dump.encode()).hexdigest()


def _digest(path: Path) -> str:
    return "a folder" if path.is_dir() else hashlib.sha256(path.read_bytes()).hexdigest()


# --- bad input, and what is expected of it ---


def furnish(stage: Stage) -> None:
    """12 conversations with ratings and comments, a trained model, a run with two candidates."""
    stage.finished(("Be polite.", 0.4), ("Ask for the order number.", 0.6))


@dataclass(frozen=True)
class Case:
    """says: words of the message, of what is wrong and of what to do next. tool with arguments,
    and command: the doors that it comes to. files: in the project's folder. library: what there
    is before.
    """

    id: str
    says: tuple[str, ...]
    tool: str = ""
    arguments: Mapping[str, Any] = field(default_factory=dict)
    command: tuple[str, ...] = ()
    files: Mapping[str, bytes] = field(default_factory=dict)
    library: Callable[[Stage], None] = furnish


def at_tools(cases: Iterable[Case]) -> pytest.MarkDecorator:
    """Parametrizes `case` with those that come to a tool."""
    return _parametrized(case for case in cases if case.tool)


def at_commands(cases: Iterable[Case]) -> pytest.MarkDecorator:
    return _parametrized(case for case in cases if case.command)


def _parametrized(cases: Iterable[Case]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("case", [pytest.param(case, id=case.id) for case in cases])


def _nothing() -> None:
    pass


async def refused_by_tool(
    case: Case, doors: Doors, break_something: Callable[[], None] = _nothing
) -> None:
    """Assert that the tool says what is wrong and what to do, and changes nothing.

    break_something: called once the library is there.
    """
    before = _prepared(case, doors.stage)
    break_something()
    is_error, text = await doors.call(case.tool, **case.arguments)
    assert is_error, text
    assert_says(text, case.says)
    _assert_unchanged(before, doors.stage)


def refused_by_command(
    case: Case, doors: Doors, break_something: Callable[[], None] = _nothing
) -> None:
    """Assert the same of the command, for people and for programs."""
    before = _prepared(case, doors.stage)
    break_something()
    said = doors.command(*case.command)
    assert (said.code, said.out) == (1, ""), said
    assert "Error: " in said.err
    assert_says(said.err, case.says)
    for_programs = doors.command(*case.command, "--json")
    assert for_programs.code == 1
    error = json.loads(for_programs.out)["error"]
    assert_says(error["message"], case.says)
    assert error["fix"]
    assert error["code"] not in ("error", "unexpected")
    _assert_unchanged(before, doors.stage)


def assert_says(text: str, says: tuple[str, ...]) -> None:
    for words in says:
        assert words in text, f"{words!r} is not in: {text}"
    assert "Traceback" not in text
    assert "unexpected" not in text.lower(), text
    assert len(text) < _LONGEST_MESSAGE


def _prepared(case: Case, stage: Stage) -> dict[str, str]:
    case.library(stage)
    for name, data in case.files.items():
        (stage.settings.project_dir / name).write_bytes(data)
    return content(stage.settings)


def _assert_unchanged(before: dict[str, str], stage: Stage) -> None:
    after = content(stage.settings)
    changed = {name for name in before.keys() | after.keys() if before.get(name) != after.get(name)}
    assert not changed
    assert is_sound(stage.settings)
