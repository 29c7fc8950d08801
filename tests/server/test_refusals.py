"""What a refused or failed call says: what happened, to what, and what to do next."""

import logging
from pathlib import Path

import pytest
from mcp import Client
from mcp.types import TextContent
from support.staging import Stage

from stash_mcp.backends.base import Backend
from stash_mcp.errors import NotWritableError
from stash_mcp.server.app import SkillServer, build_server

pytestmark = pytest.mark.anyio


async def refused(server: SkillServer, tool: str, **arguments: object) -> str:
    async with Client(server) as client:
        answer = await client.call_tool(tool, arguments)
    assert answer.is_error
    [block] = answer.content
    assert isinstance(block, TextContent)
    assert "Traceback" not in block.text
    return block.text


async def test_a_refusal_of_ours_is_the_problem_and_the_fix(server: SkillServer) -> None:
    said = await refused(server, "get_trace", trace_id="nobody")
    assert said.startswith("There is no trace 'nobody' in the library.")
    assert "list_traces" in said


async def test_an_unknown_id_of_a_job_names_both_lists(server: SkillServer) -> None:
    said = await refused(server, "get_run", run_id="nothing")
    assert "no run and no reward model 'nothing'" in said
    assert "list_runs" in said
    assert "list_reward_models" in said


async def test_arguments_out_of_bounds_are_named_with_what_was_given(server: SkillServer) -> None:
    said = await refused(server, "get_run", run_id="r", wait_seconds=99, until="never")
    assert "- wait_seconds: Input should be less than or equal to 50, not 99" in said
    assert "- until: Input should be 'news' or 'end', not 'never'" in said
    assert "pydantic" not in said


async def test_a_missing_argument_is_named(server: SkillServer) -> None:
    said = await refused(server, "start_gepa_run", reward_model_id="rm-1")
    assert "- task_model: Field required" in said


async def test_an_argument_that_does_not_exist_is_not_dropped_in_silence(
    server: SkillServer,
) -> None:
    said = await refused(server, "list_runs", limits=3)
    assert said == "list_runs has no argument limits. Its arguments are: limit, offset."


async def test_an_unknown_tool_is_refused_in_words(server: SkillServer) -> None:
    assert "Unknown tool: delete_everything" in await refused(server, "delete_everything")


async def test_a_conflict_shows_the_difference(server: SkillServer, stage: Stage) -> None:
    run = stage.finished(("Seed.", 0.4), ("Better.", 0.6))
    path = stage.settings.project_dir / ".claude" / "skills" / "polite-support" / "SKILL.md"
    path.parent.mkdir(parents=True)
    path.write_text("---\nname: polite-support\ndescription: Mine.\n---\n\nMine.", "utf-8")
    said = await refused(server, "install_skill", run_id=run.id)
    assert "-Mine." in said
    assert "+Better." in said
    assert "Mine." in path.read_text("utf-8")


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({}, "There is nothing to import."),
        ({"path": "gone.jsonl"}, "There is no file"),
        ({"path": "."}, "is a folder"),
        ({"path": "a\0b"}, "has a NUL in it"),
        ({"path": "some.jsonl", "data": "{}"}, "Both a file and text were given."),
        ({"path": "empty.jsonl"}, "empty"),
        ({"data": "not json"}, "Line 1"),
        ({"path": "broken.jsonl"}, "UTF-8"),
        ({"data": '{"id": "a"'}, "Line 1"),
        ({"data": "{}", "format": "nonsense"}, "nonsense"),
    ],
)
async def test_what_cannot_be_imported_is_refused_in_words(
    server: SkillServer, stage: Stage, arguments: dict[str, str], problem: str
) -> None:
    folder = stage.settings.project_dir
    (folder / "some.jsonl").write_bytes(b"{}\n")
    (folder / "empty.jsonl").write_bytes(b"")
    (folder / "broken.jsonl").write_bytes(b'{"id": "\xff"}\n')
    assert problem in await refused(server, "import_traces", **arguments)
    assert stage.backend.list_traces(limit=1, offset=0).total == 0


async def test_a_crash_says_where_its_details_are_and_nothing_of_them(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def crash() -> Backend:
        raise ZeroDivisionError("secret detail")

    said = await refused(build_server(crash, tmp_path), "list_runs")
    assert said.startswith("list_runs failed unexpectedly (ZeroDivisionError)")
    assert "secret detail" not in said
    assert [record.levelno for record in caplog.records if record.exc_info] == [logging.ERROR]


async def test_a_library_that_cannot_be_opened_is_tried_again(stage: Stage) -> None:
    tries: list[str] = []

    def open_backend() -> Backend:
        tries.append("open")
        if len(tries) == 1:
            raise NotWritableError("The library cannot be written.", "Check its folder.")
        return stage.backend

    server = build_server(open_backend, stage.settings.project_dir)
    async with Client(server) as client:
        await client.list_tools()
        assert tries == []
        first = await client.call_tool("list_runs", {})
        await client.call_tool("list_runs", {})
        last = await client.call_tool("list_traces", {})
    assert (first.is_error, last.is_error) == (True, False)
    assert tries == ["open", "open"]
