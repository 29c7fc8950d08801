"""Completion of ids, in templates and in prompts."""

from typing import Literal

import pytest
from mcp import Client
from mcp.types import Completion, PromptReference, ResourceTemplateReference
from support.staging import Stage, conversation, jsonl

from stash_mcp.backends.installations import InstallOrder
from stash_mcp.server import resource_uris as uris
from stash_mcp.server.app import SkillServer, build_server

pytestmark = pytest.mark.anyio


async def complete(
    client: Client, ref: str, name: str, value: str = "", **known: str
) -> Completion:
    reference = (
        ResourceTemplateReference(type="ref/resource", uri=ref)
        if "://" in ref
        else PromptReference(type="ref/prompt", name=ref)
    )
    answer = await client.complete(reference, {"name": name, "value": value}, known or None)
    assert len(answer.completion.values) <= 100
    return answer.completion


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_ids_are_completed_by_their_beginning(
    mode: Literal["auto", "legacy"], server: SkillServer, stage: Stage
) -> None:
    first = stage.finished(("Be polite.", 0.4), ("Ask for the order number.", 0.6))
    second = stage.start(first.request.reward_model_id)
    stage.backend.install_skill(InstallOrder(run_id=first.id))
    async with Client(server, mode=mode) as client:
        runs = await complete(client, uris.RUN, "run_id", "RUN")
        none = await complete(client, uris.RUN, "run_id", "x")
        traces = await complete(client, uris.TRACE, "trace_id", "c-0")
        numbers = await complete(client, uris.CANDIDATE, "candidate", run_id=first.id)
        lost = await complete(client, uris.CANDIDATE, "candidate", run_id="none")
        installed = await complete(client, uris.INSTALLED, "skill", "pol")
        offered = await complete(client, uris.SKILL_PATH, "skill", "review")
        paths = await complete(client, uris.SKILL_PATH, "path", "ref", skill="review-sessions")
    assert runs.values == [second.id, first.id]
    assert (runs.total, runs.has_more) == (2, False)
    assert none.values == []
    assert traces.values == [f"c-{number:02}" for number in range(10)]
    assert (numbers.values, lost.values) == (["0", "1"], [])
    assert installed.values == ["polite-support"]
    assert offered.values == ["review-sessions"]
    assert paths.values == ["references/label-errors.md"]


async def test_the_arguments_of_prompts_are_completed_from_what_was_used_before(
    server: SkillServer, stage: Stage
) -> None:
    run = stage.finished(("Be polite.", 0.4), ("Ask for the order number.", 0.6))
    async with Client(server) as client:
        names = {
            prompt.name: [argument.name for argument in prompt.arguments or ()]
            for prompt in (await client.list_prompts()).prompts
        }
        task = await complete(client, "make_skill", "task_model")
        writer = await complete(client, "make_skill", "reflection_model", "b")
        own = await complete(client, "make_skill", "reflection_model", "a")
        traces = await complete(client, "make_skill", "traces", "c-1")
        runs = await complete(client, "read_candidates", "run_id")
        free = await complete(client, "review_session", "focus", "t")
    assert names == {
        "review_session": ["trace_id", "focus"],
        "make_skill": ["traces", "task_model", "reflection_model"],
        "read_candidates": ["run_id"],
        "next_round": ["skill"],
    }
    assert (task.values, writer.values) == (["openai/small"], ["builtin/comments"])
    assert own.values == ["agent"]
    assert traces.values == ["c-10", "c-11"]
    assert (runs.values, free.values) == ([run.id], [])


async def test_of_many_the_first_hundred_are_given_and_the_rest_is_said(
    server: SkillServer, stage: Stage
) -> None:
    rows = [conversation(f"t-{number:04}", "Hi.", "Hello.") for number in range(1200)]
    stage.backend.import_traces(jsonl(rows))
    async with Client(server) as client:
        some = await complete(client, uris.TRACE, "trace_id", "t-00")
        many = await complete(client, uris.TRACE, "trace_id", "t-0")
        all_of_them = await complete(client, uris.TRACE, "trace_id")
    assert (len(some.values), some.total, some.has_more) == (100, 100, False)
    assert (len(many.values), many.total, many.has_more) == (100, 1000, True)
    assert (len(all_of_them.values), all_of_them.total, all_of_them.has_more) == (100, None, True)


async def test_listing_and_completing_make_no_library(stage: Stage) -> None:
    def refuse() -> object:
        raise AssertionError("the library was opened")

    server = build_server(
        refuse,  # type: ignore[arg-type]
        stage.settings.project_dir,
        has_library=lambda: False,
    )
    async with Client(server, mode="legacy") as client:
        listed = (await client.list_resources()).resources
        runs = await complete(client, uris.RUN, "run_id")
        await client.list_prompts()
        await client.list_resource_templates()
    assert [row.name for row in listed] == ["review-sessions", "skill-from-comments"]
    assert runs.values == []
