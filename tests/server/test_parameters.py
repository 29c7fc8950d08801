"""What callers give for a parameter that is not meant so."""

import pytest
from mcp import Client
from support.staging import Stage

from stash_mcp.server.app import SkillServer
from stash_mcp.server.schemas import LARGEST

pytestmark = pytest.mark.anyio


async def test_a_number_beyond_what_the_library_holds_is_refused_for_every_parameter(
    server: SkillServer, stage: Stage
) -> None:
    async with Client(server) as client:
        tools = (await client.list_tools()).tools
        for tool in tools:
            for name, schema in tool.input_schema["properties"].items():
                if schema.get("type") != "integer":
                    continue
                for number in (LARGEST + 1, 2**64, 10**30):
                    answer = await client.call_tool(tool.name, {name: number})
                    text = answer.content[0].text  # type: ignore[union-attr]
                    assert answer.is_error, (tool.name, name)
                    assert f"- {name}: Input should be less than or equal to" in text


async def test_the_largest_number_is_taken_without_a_fault(
    server: SkillServer, stage: Stage
) -> None:
    run = stage.running(("Be polite.", 0.4))
    async with Client(server) as client:
        for tool, arguments in (
            ("get_run", {"run_id": run.id, "after_event": LARGEST}),
            ("get_reflection", {"run_id": run.id, "number": LARGEST}),
            ("submit_reflection", {"run_id": run.id, "number": LARGEST, "body": "x"}),
            ("list_candidates", {"run_id": run.id, "candidate": LARGEST}),
            ("get_trace", {"trace_id": "c-00", "step": LARGEST}),
            ("list_traces", {"offset": LARGEST}),
            ("list_runs", {"offset": LARGEST}),
            ("rollback_skill", {"skill": "none", "to_version": LARGEST}),
        ):
            answer = await client.call_tool(tool, arguments)
            text = answer.content[0].text  # type: ignore[union-attr]
            assert "defect" not in text, tool
            assert "cannot be called like this" not in text, (tool, text)


async def test_null_is_what_was_left_out(server: SkillServer, stage: Stage) -> None:
    stage.conversations()
    async with Client(server) as client:
        tools = (await client.list_tools()).tools
        for tool in tools:
            if not tool.annotations or not tool.annotations.read_only_hint:
                continue
            required = tool.input_schema.get("required", [])
            given = dict.fromkeys(tool.input_schema["properties"])
            answer = await client.call_tool(tool.name, given)
            text = answer.content[0].text  # type: ignore[union-attr]
            if required:
                assert f"- {required[0]}: Field required" in text
            assert "None" not in text, tool.name
        said = {"trace_id": "c-00", "step": 1, "rating": "up", "comment": None, "author": None}
        assert not (await client.call_tool("annotate_trace", said)).is_error


async def test_a_base_model_that_can_be_no_folder_is_refused_in_words(
    server: SkillServer, stage: Stage
) -> None:
    stage.conversations()
    async with Client(server) as client:
        answer = await client.call_tool("train_reward_model", {"base_model": "a" * 5000})
    text = answer.content[0].text  # type: ignore[union-attr]
    assert answer.is_error
    assert "no name of a model or folder" in text
    assert len(text) < 1000
