"""Every answer fits into 10,000 tokens, and pages lead to everything."""

import pytest
from mcp import Client
from mcp.types import CallToolResult, TextContent
from support.staging import Stage, conversation, jsonl

from stash_mcp.server.app import SkillServer
from stash_mcp.skills.document import MAX_BODY_CHARACTERS

pytestmark = pytest.mark.anyio

LIMIT = 10_000


def tokens(answer: CallToolResult) -> int:
    [block] = answer.content
    assert isinstance(block, TextContent)
    return len(block.text) // 4


async def test_a_conversation_of_megabytes_comes_in_pages_of_shortened_steps(
    server: SkillServer, stage: Stage
) -> None:
    contents = [f"<{number}>" + "x" * 100_000 + "<end>" for number in range(60)]
    stage.backend.import_traces(jsonl([conversation("long", *contents)]))
    seen: list[int] = []
    async with Client(server) as client:
        following: int | None = 0
        while following is not None:
            arguments = {"trace_id": "long", "from_step": following, "step_characters": 4000}
            answer = await client.call_tool("get_trace", arguments)
            assert tokens(answer) < LIMIT
            page = answer.structured_content or {}
            seen += [step["step"] for step in page["steps"]]
            following = page.get("next_step")
    assert seen == list(range(60))
    first = page["steps"][0]["content"]
    assert first.startswith("<")
    assert first.endswith("<end>")
    assert "characters left out" in first


async def test_dozens_of_annotations_on_a_step_are_counted_not_listed(
    server: SkillServer, stage: Stage
) -> None:
    stage.backend.import_traces(jsonl([conversation("much-said")]))
    async with Client(server) as client:
        for number in range(30):
            comment = f"{number} " + "long " * 200
            said = {"trace_id": "much-said", "step": 1, "comment": comment}
            assert not (await client.call_tool("annotate_trace", said)).is_error
        answer = await client.call_tool("get_trace", {"trace_id": "much-said"})
    assert tokens(answer) < LIMIT
    step = (answer.structured_content or {})["steps"][1]
    assert len(step["annotations"]) + step["annotations_left_out"] == 30


async def test_pages_of_conversations_with_long_titles_lead_to_all_of_them(
    server: SkillServer, stage: Stage
) -> None:
    rows = [
        {**conversation(f"trace-{number:03}-{'i' * 150}"), "title": "標題" * 200}
        for number in range(130)
    ]
    imported = stage.backend.import_traces(jsonl(rows))
    seen: list[str] = []
    async with Client(server) as client:
        following: int | None = 0
        while following is not None:
            answer = await client.call_tool("list_traces", {"limit": 100, "offset": following})
            assert tokens(answer) < LIMIT
            page = answer.structured_content or {}
            seen += [row["trace_id"] for row in page["traces"]]
            following = page.get("next_offset")
    assert seen == list(imported.trace_ids)


async def test_the_import_of_many_conversations_names_only_some(server: SkillServer) -> None:
    data = jsonl([conversation(f"trace-{number:04}-{'i' * 100}") for number in range(2000)])
    async with Client(server) as client:
        answer = await client.call_tool("import_traces", {"data": data.decode()})
    assert tokens(answer) < LIMIT
    facts = answer.structured_content or {}
    assert facts["imported"] == 2000
    assert len(facts["trace_ids"]) + facts["trace_ids_left_out"] == 2000


async def test_the_longest_skill_that_can_be_written_fits_with_its_diff(
    server: SkillServer, stage: Stage
) -> None:
    lines = [f"- Rule {number:04}: ask first." for number in range(480)]
    ascii_body = "\n".join(line.ljust(MAX_BODY_CHARACTERS // 500, ".") for line in lines)
    other_body = "先問訂單號碼。" * (MAX_BODY_CHARACTERS // 7)
    run = stage.finished(("Seed.", 0.4), (ascii_body, 0.6), (other_body, 0.5))
    async with Client(server) as client:
        for number, limit in ((1, LIMIT), (2, LIMIT)):
            arguments = {"run_id": run.id, "candidate": number}
            answer = await client.call_tool("list_candidates", arguments)
            assert tokens(answer) < limit
            text = (answer.structured_content or {})["text"]
            assert ("left out" in text["skill"]) == (number == 2)


async def test_a_long_run_shows_its_last_events_and_a_bounded_error(
    server: SkillServer, stage: Stage
) -> None:
    stage.conversations()
    run = stage.start(stage.trained().id)
    stage.begin()
    for number in range(40):
        stage.store.add_event(run.id, f"event {number} " + "y" * 500)
    stage.store.fail(run.id, reason="The task model refused the key.", error="z" * 2000)
    async with Client(server) as client:
        answer = await client.call_tool("get_run", {"run_id": run.id})
    assert tokens(answer) < LIMIT
    facts = answer.structured_content or {}
    assert facts["reason"] == "The task model refused the key."
    assert list(facts).index("reason") < list(facts).index("error")
    assert facts["events"][-1]["number"] == facts["last_event"]
    assert len(facts["events"]) < 20


async def test_lists_of_jobs_are_newest_first_and_paged(server: SkillServer, stage: Stage) -> None:
    stage.conversations()
    models = [stage.trained().id for _ in range(3)]
    runs = [stage.start(models[0]).id for _ in range(5)]
    async with Client(server) as client:
        listed = (await client.call_tool("list_reward_models", {})).structured_content or {}
        first = (await client.call_tool("list_runs", {"limit": 2})).structured_content or {}
        rest = (await client.call_tool("list_runs", {"offset": 2})).structured_content or {}
    assert [row["reward_model_id"] for row in listed["reward_models"]] == models[::-1]
    assert [row["run_id"] for row in first["runs"] + rest["runs"]] == runs[::-1]
    assert (first["next_offset"], rest.get("next_offset")) == (2, None)
