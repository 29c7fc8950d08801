"""The two doors to a library, an MCP client's tool call and the command, and what lies behind."""

import hashlib
import sqlite3
import sys
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pytest
from mcp import Client
from mcp.types import TextContent
from support.staging import Stage

from stash_mcp.cli.main import main
from stash_mcp.cli.session import Session
from stash_mcp.server.app import build_server
from stash_mcp.settings import Settings

# A database is compared by its rows; locks come and go.
_NOT_COMPARED = (".db", ".db-wal", ".db-shm", ".lock")


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
