"""get_run waits for news without holding up anything else."""

import math
from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import pytest
from mcp import Client
from support.staging import Stage

from stash_mcp.server.app import SkillServer

pytestmark = pytest.mark.anyio

State = dict[str, Any]


@pytest.fixture
def run_id(stage: Stage) -> str:
    stage.conversations()
    run = stage.start(stage.trained().id)
    stage.begin()
    return run.id


async def while_waiting(
    client: Client, arguments: State, act: Callable[[], Awaitable[None]]
) -> State:
    """The answer of get_run, with `act` done once the call is under way."""
    states: list[State] = []
    under_way = anyio.Event()

    async def ask() -> None:
        answer = await client.call_tool("get_run", arguments, progress_callback=begun)
        states.append(answer.structured_content or {})

    async def begun(_progress: float, _total: float | None, _message: str | None) -> None:
        under_way.set()

    async with anyio.create_task_group() as group:
        group.start_soon(ask)
        await under_way.wait()
        assert not states
        await act()
    return states[0]


async def test_without_a_wait_it_answers_at_once(server: SkillServer, run_id: str) -> None:
    async with Client(server) as client:
        answer = await client.call_tool("get_run", {"run_id": run_id})
    facts = answer.structured_content or {}
    assert (facts["status"], facts["elapsed_seconds"]) == ("running", 0)
    assert [event["message"] for event in facts["events"]] == ["Started."]
    assert "wait_seconds=50" in facts["next"]


async def test_an_event_ends_the_wait(server: SkillServer, stage: Stage, run_id: str) -> None:
    async def act() -> None:
        stage.store.add_event(run_id, "Candidate 1 scored 0.61.")

    async with Client(server) as client:
        state = await while_waiting(client, {"run_id": run_id, "wait_seconds": 50}, act)
    assert state["events"][-1]["message"] == "Candidate 1 scored 0.61."
    assert state["status"] == "running"


async def test_until_the_end_events_do_not_end_the_wait(
    server: SkillServer, stage: Stage, run_id: str
) -> None:
    async def act() -> None:
        for number in range(3):
            stage.store.add_event(run_id, f"event {number}")
        stage.store.fail(run_id, reason="The key was refused.", error="log\nThe key was refused.")

    arguments = {"run_id": run_id, "wait_seconds": 50, "until": "end"}
    async with Client(server) as client:
        state = await while_waiting(client, arguments, act)
    assert (state["status"], state["reason"]) == ("failed", "The key was refused.")
    assert [event["message"] for event in state["events"]][:4] == [
        "Started.",
        "event 0",
        "event 1",
        "event 2",
    ]


async def test_events_after_the_one_that_is_known_are_told_at_once(
    server: SkillServer, stage: Stage, run_id: str
) -> None:
    async with Client(server) as client:
        first = (await client.call_tool("get_run", {"run_id": run_id})).structured_content or {}
        stage.store.add_event(run_id, "news")
        arguments = {"run_id": run_id, "wait_seconds": 50, "after_event": first["last_event"]}
        answer = await client.call_tool("get_run", arguments)
    facts = answer.structured_content or {}
    assert [event["message"] for event in facts["events"]] == ["news"]


async def test_progress_notifications_only_grow(
    server: SkillServer, stage: Stage, run_id: str
) -> None:
    seen: list[float] = []
    reached = anyio.Event()

    async def note(progress: float, total: float | None, _message: str | None) -> None:
        seen.append(progress)
        assert total == 120
        if progress == 0:
            stage.report(run_id, phase="scoring", metric_calls=7)
        if progress == 7:
            # Lower than before: not told.
            stage.report(run_id, phase="scoring", metric_calls=3)
            reached.set()

    async def end() -> None:
        await reached.wait()
        stage.report(run_id, phase="scoring", metric_calls=30)
        stage.store.fail(run_id, reason="Over.", error="Over.")

    async with Client(server) as client, anyio.create_task_group() as group:
        group.start_soon(end)
        await client.call_tool(
            "get_run",
            {"run_id": run_id, "wait_seconds": 50, "until": "end"},
            progress_callback=note,
        )
    assert seen[:2] == [0, 7]
    assert 3 not in seen
    assert all(math.isfinite(value) for value in seen)


async def test_other_calls_are_answered_during_a_wait(
    server: SkillServer, stage: Stage, run_id: str
) -> None:
    async with Client(server) as client:

        async def act() -> None:
            answer = await client.call_tool("list_runs", {})
            assert (answer.structured_content or {})["total"] == 1
            stage.store.add_event(run_id, "news")

        state = await while_waiting(client, {"run_id": run_id, "wait_seconds": 50}, act)
    assert state["events"][-1]["message"] == "news"


async def test_a_training_is_followed_by_the_same_tool(server: SkillServer, stage: Stage) -> None:
    stage.conversations()
    model = stage.train()
    stage.begin()
    stage.report(model.id, phase="training", done=3, total=9, estimate_seconds=12.2)
    async with Client(server) as client:
        answer = await client.call_tool("get_run", {"run_id": model.id})
    facts = answer.structured_content or {}
    assert (facts["kind"], facts["phase"], facts["done"], facts["total"]) == (
        "training",
        "training",
        3,
        9,
    )
    assert facts["estimate_seconds"] == 12
    assert "run" not in facts


async def test_a_job_that_is_over_or_queued_again_is_in_the_middle_of_nothing(
    server: SkillServer, stage: Stage
) -> None:
    stage.conversations()
    model = stage.trained()
    stage.report(model.id, phase="finished", done=0, total=12)
    run = stage.start(model.id)
    stage.begin()
    stage.report(run.id, phase="optimising", done=2, total=9, metric_calls=40, estimate_seconds=60)
    stage.backend.cancel(run.id)
    stage.backend.resume_run(run.id)
    async with Client(server) as client:
        over = (await client.call_tool("get_run", {"run_id": model.id})).structured_content or {}
        again = (await client.call_tool("get_run", {"run_id": run.id})).structured_content or {}
    assert over["phase"] == "finished"
    assert (again["status"], again["phase"], again["run"]["metric_calls"]) == (
        "queued",
        "waiting",
        40,
    )
    for facts in (over, again):
        assert not {"done", "total", "estimate_seconds"} & facts.keys()
