"""Every answer fits into 10,000 tokens, and pages lead to everything."""

import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError
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


@pytest.mark.parametrize("character", ['"', "\\", "\x01", "先", "\U0001f600"])
async def test_what_json_writes_longer_is_counted_as_long_as_it_is_written(
    character: str, server: SkillServer, stage: Stage
) -> None:
    kept = character.replace("\x01", '"')
    run = stage.finished(("Seed.", 0.4), (kept * (MAX_BODY_CHARACTERS - 20), 0.6))
    talk = {**conversation("odd", *(character * 9000 for _ in range(6))), "title": character * 300}
    talk["metadata"] = {"note": character * 3000}
    notes = said_of("odd", [f"{number}{character * 5000}" for number in range(12)])
    stage.backend.import_traces(jsonl([talk]), annotations=jsonl(notes))
    async with Client(server) as client:
        for tool, arguments in (
            ("list_candidates", {"run_id": run.id, "candidate": 1}),
            ("get_trace", {"trace_id": "odd", "step_characters": 4000}),
            ("get_trace", {"trace_id": "odd", "step": 1}),
            ("get_trace", {"trace_id": "odd", "step": -1}),
            ("list_traces", {}),
            ("get_run", {"run_id": run.id}),
        ):
            answer = await client.call_tool(tool, arguments)
            assert not answer.is_error, (tool, answer)
            text = answer.content[0].text  # type: ignore[union-attr]
            assert len(text.encode()) < 4 * LIMIT, (tool, arguments)


def said_of(trace_id: str, comments: list[str]) -> list[dict[str, object]]:
    """Each comment on the whole conversation and on its step 1."""
    common = {"trace_id": trace_id, "author": "R" * 200, "created_at": "2026-01-02T03:04:05Z"}
    return [
        {**common, "comment": comment, **where}
        for comment in comments
        for where in ({}, {"step_index": 1})
    ]


async def test_a_step_and_all_that_was_said_of_it_can_be_read_to_the_end(
    server: SkillServer, stage: Stage
) -> None:
    long = "".join(f"<{number}>" + "語" * 40 for number in range(900))
    talk = conversation("long", "Look it up.", long)
    talk["steps"].append(  # type: ignore[attr-defined]
        {"role": "tool", "content": "found", "tool_name": "search", "tool_input": {"q": "x" * 9000}}
    )
    talk["metadata"] = {"note": "y" * 5000}
    comments = [f"[{number}] " + "why " * 500 for number in range(25)]
    notes = said_of("long", comments)
    stage.backend.import_traces(jsonl([talk]), annotations=jsonl(notes))
    async with Client(server) as client:
        await client.call_tool(
            "annotate_trace", {"trace_id": "long", "step": 1, "rating": "up", "quote": "<3>"}
        )
        whole, step, tool = [await read(client, number) for number in (-1, 1, 2)]
        beyond = await client.call_tool("get_trace", {"trace_id": "long", "step": 3})
    for text in (whole, step):
        assert [text.count(comment.strip()) for comment in comments] == [1] * len(comments)
    assert long in step
    assert "> <3>" in step
    assert "y" * 5000 in whole
    assert "x" * 9000 in tool
    assert beyond.is_error
    assert "has no step 3; it has 3" in beyond.content[0].text  # type: ignore[union-attr]


async def read(client: Client, step: int) -> str:
    """All pages of it, put together."""
    parts: list[str] = []
    following: int | None = 0
    while following is not None:
        arguments = {"trace_id": "long", "step": step, "offset": following}
        answer = await client.call_tool("get_trace", arguments)
        assert tokens(answer) < LIMIT
        page = answer.structured_content or {}
        parts.append(page["text"])
        following = page.get("next_offset")
    return "".join(parts)


@pytest.mark.parametrize("long", ["z" * 1_000_000, "語" * 200_000])
async def test_a_refusal_does_not_repeat_all_that_was_given(long: str, server: SkillServer) -> None:
    calls: list[tuple[str, dict[str, object]]] = [
        ("list_candidates", {"run_id": long}),
        ("get_run", {"run_id": long}),
        ("get_trace", {"trace_id": long}),
        ("import_traces", {"path": long}),
        ("import_traces", {"data": long}),
        ("start_gepa_run", {"reward_model_id": long, "task_model": long}),
        ("train_reward_model", {"trace_ids": [long, long]}),
        ("train_reward_model", {"trace_ids": list(range(900))}),
        ("rollback_skill", {"skill": long}),
        ("list_runs", {long: 1}),
        ("list_runs", {f"{number}{long[:100]}": 1 for number in range(5000)}),
        (long, {}),
    ]
    async with Client(server) as client:
        for tool, arguments in calls:
            answer = await client.call_tool(tool, arguments)
            text = answer.content[0].text  # type: ignore[union-attr]
            assert answer.is_error
            assert len(text) < 2200, (tool[:30], len(text))
            assert not text.endswith(long[:10]), tool[:30]
        for uri in (f"stash://runs/{long}", f"skill://{long}", f"stash://traces/{long[:3000]}"):
            with pytest.raises(MCPError) as caught:
                await client.read_resource(uri)
            assert len(str(caught.value)) < 2200
        for name, given in ((long, {}), ("next_round", {long: "x"})):
            with pytest.raises(MCPError) as caught:
                await client.get_prompt(name, given)
            assert len(str(caught.value)) < 2200
