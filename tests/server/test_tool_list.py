"""What a client loads into a model's context before any call."""

import pytest
from mcp import Client
from mcp.types import Tool

from stash_mcp.server.app import INSTRUCTIONS, SkillServer

pytestmark = pytest.mark.anyio

READING = {
    "list_traces",
    "get_trace",
    "list_reward_models",
    "get_run",
    "list_runs",
    "list_candidates",
    "list_installed_skills",
    "get_reflection",
}
WRITING = {
    "import_traces",
    "annotate_trace",
    "flag_annotation",
    "train_reward_model",
    "start_gepa_run",
    "cancel_run",
    "resume_run",
    "submit_reflection",
    "install_skill",
    "rollback_skill",
    "uninstall_skill",
    "doctor",
    "sync_with_stash",
}


@pytest.fixture
async def tools(server: SkillServer) -> list[Tool]:
    async with Client(server) as client:
        return (await client.list_tools()).tools


async def test_the_tools_are_those_of_the_loop(tools: list[Tool]) -> None:
    assert {tool.name for tool in tools} == READING | WRITING


async def test_the_whole_list_keeps_to_ten_thousand_tokens_for_twenty_tools(
    server: SkillServer,
) -> None:
    async with Client(server) as client:
        answer = await client.list_tools()
    tokens = len(answer.model_dump_json(by_alias=True, exclude_none=True).encode()) / 4
    assert tokens < 10_000
    # A tool that is added brings its own share, and does not live on what others left.
    assert tokens < 500 * len(answer.tools)


async def test_each_tool_says_when_to_use_it_in_its_first_words(tools: list[Tool]) -> None:
    for tool in tools:
        assert tool.title
        assert tool.description
        assert tool.description.startswith("Use this ")
        assert len(tool.description.encode()) < 1024


async def test_the_annotations_tell_readers_from_writers(tools: list[Tool]) -> None:
    read_only = {
        tool.name for tool in tools if tool.annotations and tool.annotations.read_only_hint
    }
    assert read_only == READING
    replacing = {
        tool.name for tool in tools if tool.annotations and tool.annotations.destructive_hint
    }
    assert replacing == {"import_traces", "install_skill", "rollback_skill", "uninstall_skill"}


async def test_input_schemas_are_flat_and_every_parameter_is_described_or_plain(
    tools: list[Tool],
) -> None:
    for tool in tools:
        schema = tool.input_schema
        assert schema["type"] == "object"
        assert not {"anyOf", "oneOf", "allOf", "$ref"} & schema.keys()
        for name, parameter in schema["properties"].items():
            assert "anyOf" not in parameter, (tool.name, name)
            assert "type" in parameter or "enum" in parameter, (tool.name, name)
            bounded = {"minimum", "exclusiveMinimum", "maximum"} & parameter.keys()
            if parameter["type"] in ("integer", "number"):
                assert bounded, (tool.name, name)
            assert "description" in parameter or bounded, (tool.name, name)


async def test_every_tool_has_an_output_schema_without_nulls(tools: list[Tool]) -> None:
    for tool in tools:
        assert tool.output_schema is not None
        assert tool.output_schema["type"] == "object"
        assert '"null"' not in str(tool.output_schema).replace("'", '"')


def test_the_instructions_fit_into_what_clients_show() -> None:
    assert len(INSTRUCTIONS.encode()) < 2048
    for name in (READING | WRITING) - {"list_traces", "flag_annotation"}:
        assert name in INSTRUCTIONS
