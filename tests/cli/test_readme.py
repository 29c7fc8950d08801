"""The README's tables name every tool and every command, and nothing else."""

import re
from pathlib import Path

import pytest
import typer
from support.staging import Stage

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


def test_the_conversations_and_annotations_of_the_readme_are_imported_as_they_stand(
    stage: Stage,
) -> None:
    traces, notes = re.findall(r"^```json\n(.*?)^```", README, flags=re.MULTILINE | re.DOTALL)
    report = stage.backend.import_traces(traces.encode(), annotations=notes.encode())
    assert (report.imported, report.annotations_added) == (2, 2)


def examples() -> list[str]:
    """The lines of the blocks of code, without what comes after a comment's mark."""
    blocks = README.split("\n```")[1::2]
    return [line.partition(" # ")[0] for block in blocks for line in block.splitlines()[1:]]


def test_every_command_in_an_example_takes_the_options_that_it_is_given() -> None:
    commands = typer.main.get_command(app).commands
    seen = set()
    for line in examples():
        for words in re.findall(r"(?:^|  )stash-skills ([a-z-]+\b[^;`]*)", line):
            name, _, given = words.partition(" ")
            assert name in commands, line
            known = {
                option
                for row in commands[name].params
                for option in (*row.opts, *row.secondary_opts)
            }
            unknown = set(re.findall(r"(?<![\w-])--?[a-z][\w-]*", given.split("  ")[0])) - known
            assert not unknown - {"--help"}, (line, unknown)
            seen.add(name)
    assert len(seen) > 20


@pytest.mark.anyio
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_every_tool_in_an_example_takes_the_arguments_that_it_is_given(
    tmp_path: Path, anyio_backend: str
) -> None:
    server = build_server(lambda: pytest.fail("no library is needed"), tmp_path)
    tools = {tool.name: set(tool.input_schema["properties"]) for tool in await server.list_tools()}
    seen = set()
    for name, given in re.findall(r"\b([a-z]\w+_\w+|doctor)\(([^)]*)\)", README):
        assert name in tools, name
        arguments = re.findall(r"(\w+)=", re.sub(r'"[^"]*"', "", given))
        assert set(arguments) <= tools[name], (name, given)
        seen.add(name)
    assert seen == set(tools)
