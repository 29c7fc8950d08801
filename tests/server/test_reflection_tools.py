"""An agent is told what a run asks it, reads it, and answers."""

from typing import Any

import anyio
import pytest
from mcp import Client
from mcp.types import TextContent
from support.staging import Stage

from stash_mcp.backends.base import RunOrder
from stash_mcp.optimization.agent import MAX_PROMPT_BYTES
from stash_mcp.runs.reflections import Question, ReflectionStore
from stash_mcp.server.app import SkillServer
from stash_mcp.storage.database import Database

pytestmark = pytest.mark.anyio


@pytest.fixture
def run_id(stage: Stage) -> str:
    stage.conversations()
    order = RunOrder(
        reward_model_id=stage.trained().id, task_model="openai/small", reflection_model="agent"
    )
    run = stage.backend.start_run(order).run
    stage.begin()
    return run.id


@pytest.fixture
def store(stage: Stage) -> ReflectionStore:
    return ReflectionStore(Database(stage.settings.library_path), stage.clock)


async def call(server: SkillServer, tool: str, **arguments: object) -> dict[str, Any]:
    async with Client(server) as client:
        answer = await client.call_tool(tool, arguments)
    assert not answer.is_error, answer.content
    return answer.structured_content or {}


async def refused(server: SkillServer, tool: str, **arguments: object) -> str:
    async with Client(server) as client:
        answer = await client.call_tool(tool, arguments)
    assert answer.is_error
    [block] = answer.content
    assert isinstance(block, TextContent)
    return block.text


async def test_the_plan_says_how_much_the_agent_will_be_asked(
    server: SkillServer, stage: Stage
) -> None:
    stage.conversations()
    answer = await call(
        server,
        "start_gepa_run",
        reward_model_id=stage.trained().id,
        task_model="openai/small",
        reflection_model="agent",
    )
    said = " ".join(answer["plan_in_words"])
    assert "at most 17 reflections are asked of the agent that is connected" in said


async def test_a_run_that_waits_says_so_wherever_it_is_shown(
    server: SkillServer, store: ReflectionStore, run_id: str
) -> None:
    for prompt in ("Write a.", "Write b."):
        store.ask(run_id, Question("body", prompt))
    state = await call(server, "get_run", run_id=run_id)
    assert state["run"]["reflections_waiting"] == [1, 2]
    assert state["next"].startswith("It waits for 2 reflections: read get_reflection(run_id=")
    assert "last_sign_of_life_seconds" not in state
    [row] = (await call(server, "list_runs"))["runs"]
    assert row["progress"] == "waits for 2 reflections"


@pytest.mark.parametrize("until", ["news", "end"])
async def test_a_new_reflection_ends_every_wait(
    server: SkillServer, store: ReflectionStore, run_id: str, until: str
) -> None:
    under_way = anyio.Event()
    states: list[dict[str, Any]] = []

    async def begun(_progress: float, _total: float | None, _message: str | None) -> None:
        under_way.set()

    async def wait(client: Client) -> None:
        arguments = {"run_id": run_id, "wait_seconds": 50, "until": until}
        answer = await client.call_tool("get_run", arguments, progress_callback=begun)
        states.append(answer.structured_content or {})

    async with Client(server) as client, anyio.create_task_group() as group:
        group.start_soon(wait, client)
        await under_way.wait()
        assert not states
        store.ask(run_id, Question("body", "Write a."))
    assert states[0]["run"]["reflections_waiting"] == [1]
    assert states[0]["status"] == "running"


async def test_the_agents_answers_are_counted_without_tokens_and_without_a_price(
    server: SkillServer, stage: Stage, run_id: str
) -> None:
    usage = {"calls": 3, "remembered": 1, "cost_usd": 0.0}
    stage.report(run_id, phase="optimising", reflection_usage=usage)
    state = await call(server, "get_run", run_id=run_id)
    assert state["run"]["reflection_usage"]["in_words"] == "3 calls; 1 answer remembered"


async def test_each_reflection_is_read_refused_and_answered_by_its_number(
    server: SkillServer, store: ReflectionStore, run_id: str
) -> None:
    store.ask(run_id, Question("body", "Write a.", "old"))
    store.ask(run_id, Question("identity", "Name it."))
    first = await call(server, "get_reflection", run_id=run_id)
    assert (first["number"], first["kind"], first["prompt"]) == (1, "body", "Write a.")
    assert first["waiting"] == [1, 2]
    assert first["next"] == (
        f'Answer it with submit_reflection(run_id="{run_id}", number=1, body=...).'
    )
    said = await refused(server, "submit_reflection", run_id=run_id, number=1, body="old")
    assert "The body is the present one, unchanged." in said
    assert "It still waits: correct that and submit it again." in said
    accepted = await call(server, "submit_reflection", run_id=run_id, number=1, body="[1] new")
    assert accepted["waiting"] == [2]
    assert "waits for 1 reflection:" in accepted["next"]
    assert store.get(run_id, 1).answer == "[1] new"

    second = await call(server, "get_reflection", run_id=run_id, number=2)
    assert "name=..., description=..." in second["next"]
    said = await refused(server, "submit_reflection", run_id=run_id, number=2, name="No Good")
    assert "only a-z" in said
    accepted = await call(
        server,
        "submit_reflection",
        run_id=run_id,
        number=2,
        name="parcels",
        description="About parcels.",
    )
    assert accepted["waiting"] == []
    assert "wait_seconds=50" in accepted["next"]


async def test_nothing_to_answer_is_an_answer_too(server: SkillServer, run_id: str) -> None:
    found = await call(server, "get_reflection", run_id=run_id)
    assert found["waiting"] == []
    assert "prompt" not in found
    assert found["next"].startswith("No reflection waits now. Wait with get_run")


async def test_the_longest_prompt_fits_into_one_answer(
    server: SkillServer, store: ReflectionStore, run_id: str
) -> None:
    for number in range(16):
        store.ask(run_id, Question("body", f"{number}" + "x" * (MAX_PROMPT_BYTES - 4)))
    async with Client(server) as client:
        answer = await client.call_tool("get_reflection", {"run_id": run_id})
    [block] = answer.content
    assert isinstance(block, TextContent)
    assert len(block.text.encode()) / 3 < 10_000
