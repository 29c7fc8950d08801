"""The schemas of answers are short, and every tool's real answer keeps to its own."""

from typing import Any

import pytest
from jsonschema import Draft202012Validator, ValidationError
from mcp import Client
from mcp.types import Tool
from pydantic import BaseModel, Field
from support.staging import Stage

from stash_mcp.server.app import SkillServer
from stash_mcp.server.schemas import slim, slim_result

SCORED = (("Be polite.", 0.4), ("Ask for the order number.", 0.6))

Facts = dict[str, Any]


class Used(BaseModel):
    """A docstring that is for readers of the code."""

    count: int


class Row(BaseModel):
    used: Used
    note: str | None = None
    title: str = ""
    required: bool = True


class Answer(BaseModel):
    """Everything."""

    rows: tuple[Row, ...]
    first: Used | None = Field(None, description="The first")
    other: Row | None = None


def test_a_parameter_that_may_be_left_out_is_neither_null_nor_an_empty_default() -> None:
    properties = slim(Row.model_json_schema())["properties"]
    assert properties["note"] == {"type": "string"}
    assert properties["title"] == {"type": "string"}
    assert properties["required"] == {"default": True, "type": "boolean"}


def test_a_part_used_once_stands_where_it_is_used_and_others_are_shared() -> None:
    class Small(BaseModel):
        row: Row = Field(description="The only one")

    schema = slim_result(Small.model_json_schema())
    used = {"properties": {"count": {"type": "integer"}}, "type": "object"}
    assert "$defs" not in schema
    assert schema["properties"]["row"]["properties"]["used"] == used
    assert schema["properties"]["row"]["description"] == "The only one"
    shared = slim_result(Answer.model_json_schema())
    assert set(shared["$defs"]) == {"Row", "Used"}
    assert shared["$defs"]["Row"]["properties"]["used"] == {"$ref": "#/$defs/Used"}


def test_only_the_answer_itself_says_what_is_always_there() -> None:
    schema = slim_result(Answer.model_json_schema())
    assert schema["required"] == ["rows"]
    assert "required" not in schema["$defs"]["Used"]
    # A property of that name stays.
    assert "required" in schema["$defs"]["Row"]["properties"]


def test_docstrings_are_left_out_and_descriptions_of_fields_are_not() -> None:
    schema = slim_result(Answer.model_json_schema())
    assert "readers of the code" not in str(schema)
    assert schema["properties"]["first"]["description"] == "The first"


# --- real answers ---


async def loop(client: Client, stage: Stage) -> list[tuple[str, Facts]]:
    """What each tool answered, some in several states."""
    answers: list[tuple[str, Facts]] = []

    async def call(tool: str, **arguments: object) -> Facts:
        answer = await client.call_tool(tool, arguments)
        assert not answer.is_error, answer.content
        assert answer.structured_content is not None
        answers.append((tool, answer.structured_content))
        return answer.structured_content

    line = '{"id": "one", "steps": [{"role": "user", "content": "?"}]}'
    await call("import_traces", data=line)
    stage.conversations()
    noted = await call("annotate_trace", trace_id="c-00", step=1, comment="Good.", quote="Tell me")
    await call("flag_annotation", annotation_id=noted["annotation"]["id"], note="no")
    await call("list_traces", limit=3)
    await call("get_trace", trace_id="c-00")
    queued = await call("train_reward_model")
    await call("cancel_run", run_id=queued["reward_model_id"])
    model = stage.trained()
    await call("list_reward_models")
    await call("get_run", run_id=model.id)
    await _around_runs(call, stage)
    await call("start_gepa_run", reward_model_id=model.id, task_model="openai/gpt-4o-mini")
    return answers


async def _around_runs(call: Any, stage: Stage) -> None:
    failed = stage.failed(*SCORED)
    await call("get_run", run_id=failed.id)
    await call("resume_run", run_id=failed.id)
    await call("cancel_run", run_id=failed.id)
    run = stage.finished(*SCORED)
    await call("get_run", run_id=run.id)
    await call("list_runs")
    await call("list_candidates", run_id=run.id)
    await call("list_candidates", run_id=run.id, candidate=1)
    await call("install_skill", run_id=run.id, dry_run=True)
    await call("install_skill", run_id=run.id)
    await call("install_skill", run_id=run.id, candidate=0)
    await call("list_installed_skills")
    await call("list_installed_skills", skill="polite-support")
    await call("rollback_skill", skill="polite-support")
    await call("uninstall_skill", skill="polite-support")


@pytest.mark.anyio
async def test_real_answers_of_the_whole_loop_keep_to_their_schemas(
    server: SkillServer, stage: Stage
) -> None:
    async with Client(server) as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        answers = await loop(client, stage)
    assert len({name for name, _ in answers}) == 17
    for name, answer in answers:
        _validator(tools[name]).validate(answer)
        _assert_named(answer, tools[name].output_schema or {}, name)


@pytest.mark.anyio
async def test_a_wrong_type_deep_in_an_answer_does_not_keep_to_it(server: SkillServer) -> None:
    async with Client(server) as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
    for tool, answer in (
        ("list_traces", {"traces": [{"positive": "many"}], "total": 1}),
        ("get_trace", {"trace_id": "a", "total_steps": 1, "annotations": [], "steps": ["text"]}),
        ("list_runs", {"total": 1}),
    ):
        with pytest.raises(ValidationError):
            _validator(tools[tool]).validate(answer)


def _validator(tool: Tool) -> Draft202012Validator:
    schema = tool.output_schema or {}
    Draft202012Validator.check_schema(schema)
    return Draft202012Validator(schema)


def _assert_named(value: object, schema: Facts, place: str, whole: Facts | None = None) -> None:
    """Everything that an answer has is named in the schema: it allows more, and we send none."""
    whole = schema if whole is None else whole
    if "$ref" in schema:
        schema = whole["$defs"][schema["$ref"].rpartition("/")[2]]
    if isinstance(value, list):
        for item in value:
            _assert_named(item, schema["items"], place, whole)
    if isinstance(value, dict):
        for name, item in value.items():
            assert name in schema["properties"], f"{place}.{name}"
            _assert_named(item, schema["properties"][name], f"{place}.{name}", whole)
