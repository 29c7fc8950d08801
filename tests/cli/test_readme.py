"""The README's tables name every tool and every command, and nothing else."""

import re
from pathlib import Path

import pytest
import typer

from stash_mcp.cli.app import app
from stash_mcp.server.app import build_server

README = (Path(__file__).parents[2] / "README.md").read_text("utf-8")


def first_cells(heading: str) -> list[str]:
    """What stands in backticks in the first column of the table below the heading."""
    section = README.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    return re.findall(r"^\| `([\w-]+)", section, flags=re.MULTILINE)


@pytest.mark.anyio
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_the_table_of_tools_is_whole(tmp_path: Path, anyio_backend: str) -> None:
    def closed() -> None:
        raise AssertionError("a list of tools needs no library")

    server = build_server(closed, tmp_path)
    tools = await server.list_tools()
    assert first_cells("Every tool") == [tool.name for tool in tools]


def test_the_table_of_commands_is_whole() -> None:
    commands = typer.main.get_command(app).commands
    assert sorted(first_cells("Every command")) == sorted(commands)
