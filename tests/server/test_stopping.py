"""Starting once, stopping, carrying on, and what is said of spend and life."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from mcp import Client
from support.staging import Stage

from stash_mcp.server.app import SkillServer

pytestmark = pytest.mark.anyio

SCORED = (("Be polite.", 0.4), ("Ask for the order number.", 0.6))

Facts = dict[str, Any]


async def call(server: SkillServer, tool: str, **arguments: object) -> Facts:
    async with Client(server) as client:
        answer = await client.call_tool(tool, arguments)
    assert not answer.is_error, answer.content
    return answer.structured_content or {}


async def test_an_equal_run_is_returned_and_said_to_be_there(
    server: SkillServer, stage: Stage
) -> None:
    stage.conversations()
    order = {"reward_model_id": stage.trained().id, "task_model": "openai/small"}
    first = await call(server, "start_gepa_run", **order)
    again = await call(server, "start_gepa_run", **order)
    another = await call(server, "start_gepa_run", **order, new=True)
    assert (first["existing"], again["existing"], another["existing"]) == (False, True, False)
    assert first["run_id"] == again["run_id"] != another["run_id"]
    assert again["next"].startswith("An equal run is there already; new=true starts another.")
    assert "An equal run" not in first["next"]


async def test_the_caps_and_switches_reach_the_run(server: SkillServer, stage: Stage) -> None:
    stage.conversations()
    started = await call(
        server,
        "start_gepa_run",
        reward_model_id=stage.trained().id,
        task_model="openai/gpt-4o-mini",
        max_cost_usd=0.5,
        max_seconds=90,
        no_improvement_for=4,
        fresh=True,
    )
    request = stage.backend.get_run(started["run_id"]).request
    assert (request.max_cost_usd, request.max_seconds) == (0.5, 90)
    assert (request.no_improvement_for, request.fresh) == (4, True)


@pytest.mark.parametrize(
    ("model", "said"),
    [
        ("openai/gpt-4o-mini", "Expected cost if every call is made: about $0.0"),
        ("openai/small", "Expected cost: price not known."),
    ],
)
async def test_the_plan_says_the_expected_cost_and_an_unknown_price_is_no_zero(
    server: SkillServer, stage: Stage, model: str, said: str
) -> None:
    stage.conversations()
    started = await call(
        server, "start_gepa_run", reward_model_id=stage.trained().id, task_model=model
    )
    assert any(sentence.startswith(said) for sentence in started["plan_in_words"])
    assert ("cost_usd_estimate" in started["plan"]) == ("if every call" in said)
    assert started["plan"].get("cost_usd_estimate") != 0


async def test_a_cancelled_run_keeps_its_candidates_marked_as_partial(
    server: SkillServer, stage: Stage
) -> None:
    run = stage.running(*SCORED)
    cancelled = await call(server, "cancel_run", run_id=run.id)
    assert (cancelled["status"], cancelled["partial"]) == ("cancelled", True)
    assert cancelled["outcome"].startswith(f"Cancelled {run.id}. Candidate 1, the best so far")
    assert f'resume_run(run_id="{run.id}")' in cancelled["next"]
    state = (await call(server, "get_run", run_id=run.id))["run"]
    assert (state["stop_reason"], state["partial"]) == ("cancelled", True)
    for arguments in ({}, {"candidate": 1}):
        listed = await call(server, "list_candidates", run_id=run.id, **arguments)
        assert listed["partial"] is True
        assert listed["next"].startswith("A partial result")
    installed = await call(server, "install_skill", run_id=run.id)
    assert (installed["candidate"], installed["partial"]) == (1, True)
    assert installed["warning"].startswith("A partial result")


async def test_a_whole_result_carries_no_mark(server: SkillServer, stage: Stage) -> None:
    run = stage.finished(*SCORED)
    state = (await call(server, "get_run", run_id=run.id))["run"]
    assert (state["stop_reason"], state["partial"]) == ("budget", False)
    assert (await call(server, "list_candidates", run_id=run.id))["partial"] is False
    installed = await call(server, "install_skill", run_id=run.id)
    assert installed["partial"] is False
    assert "warning" not in installed


async def test_a_run_cancelled_before_its_first_score_has_nothing_to_install(
    server: SkillServer, stage: Stage
) -> None:
    stage.conversations()
    run = stage.start(stage.trained().id)
    cancelled = await call(server, "cancel_run", run_id=run.id)
    assert (cancelled["outcome"], cancelled["partial"]) == (f"Cancelled {run.id}.", False)
    assert "before anything was scored" in cancelled["next"]
    listed = await call(server, "list_candidates", run_id=run.id)
    assert listed["next"].startswith("None was scored before the run ended")


async def test_a_training_is_cancelled_by_the_same_tool(server: SkillServer, stage: Stage) -> None:
    stage.conversations()
    model = stage.train()
    cancelled = await call(server, "cancel_run", run_id=model.id)
    assert (cancelled["status"], "partial" in cancelled) == ("cancelled", False)
    assert "train_reward_model" in cancelled["next"]


async def test_cancelling_what_is_over_changes_nothing_and_says_so(
    server: SkillServer, stage: Stage
) -> None:
    run = stage.finished(*SCORED)
    cancelled = await call(server, "cancel_run", run_id=run.id)
    assert cancelled["status"] == "succeeded"
    assert cancelled["outcome"] == f"There was nothing to cancel: {run.id} had succeeded."


@pytest.mark.parametrize("stopped", [Stage.failed, Stage.cancelled])
async def test_a_stopped_run_is_carried_on(
    server: SkillServer, stage: Stage, stopped: Callable[..., object]
) -> None:
    stopped(stage, *SCORED)
    [run] = stage.backend.list_runs()
    assert "resume_run" in (await call(server, "get_run", run_id=run.id))["next"]
    resumed = await call(server, "resume_run", run_id=run.id)
    assert (resumed["id"], resumed["status"]) == (run.id, "queued")
    assert "not paid again" in resumed["outcome"]
    assert stage.begin().id == run.id


async def test_a_run_that_succeeded_is_not_carried_on(server: SkillServer, stage: Stage) -> None:
    run = stage.finished(*SCORED)
    async with Client(server) as client:
        answer = await client.call_tool("resume_run", {"run_id": run.id})
    assert answer.is_error
    assert stage.backend.get_run(run.id) == run


async def test_spend_is_told_for_each_model_and_an_unknown_price_is_left_out(
    server: SkillServer, stage: Stage
) -> None:
    run = stage.running()
    stage.report(
        run.id,
        task_usage={"calls": 2, "remembered": 7, "prompt_tokens": 1000, "completion_tokens": 50},
    )
    state = (await call(server, "get_run", run_id=run.id))["run"]
    usage = state["task_usage"]
    assert (usage["calls"], usage["remembered"]) == (2, 7)
    assert "cost_usd" not in usage
    assert usage["in_words"] == (
        "2 calls, 1,000 tokens in, 50 out, price not known; 7 answers remembered"
    )
    # The built-in reflection asks no model.
    assert "reflection_usage" not in state
    stage.report(run.id, task_usage={"calls": 2, "cost_usd": 1234.5})
    usage = (await call(server, "get_run", run_id=run.id))["run"]["task_usage"]
    assert usage["cost_usd"] == 1234.5
    assert usage["in_words"].endswith("$1,234.50")


async def test_a_running_job_tells_how_long_ago_it_gave_a_sign_of_life(
    server: SkillServer, stage: Stage
) -> None:
    run = stage.running()
    assert "last_sign_of_life_seconds" not in await call(server, "get_run", run_id=run.id)
    stage.store.beat(run.id)
    stage.now += timedelta(seconds=42)
    assert (await call(server, "get_run", run_id=run.id))["last_sign_of_life_seconds"] == 42
    stage.backend.cancel(run.id)
    assert "last_sign_of_life_seconds" not in await call(server, "get_run", run_id=run.id)
    model = stage.train()
    stage.begin()
    stage.store.beat(model.id)
    assert (await call(server, "get_run", run_id=model.id))["last_sign_of_life_seconds"] == 0


async def test_those_that_wait_have_places_in_one_queue(server: SkillServer, stage: Stage) -> None:
    run = stage.running()
    training = stage.train()
    stage.now += timedelta(seconds=1)
    waiting = stage.start(run.request.reward_model_id)
    runs = (await call(server, "list_runs"))["runs"]
    assert [(row["run_id"], row["progress"]) for row in runs] == [
        (waiting.id, "place 2 in the queue"),
        (run.id, "waiting"),
    ]
    [first, _] = (await call(server, "list_reward_models"))["reward_models"]
    assert (first["reward_model_id"], first["progress"]) == (training.id, "place 1 in the queue")


@pytest.mark.parametrize("amount", [0, -1, "NaN", "Infinity"])
async def test_a_cap_that_is_no_positive_number_is_refused(
    server: SkillServer, amount: object
) -> None:
    arguments = {"reward_model_id": "rm-1", "task_model": "m", "max_cost_usd": amount}
    async with Client(server) as client:
        answer = await client.call_tool("start_gepa_run", arguments)
    assert answer.is_error
    [block] = answer.content
    assert block.type == "text"
    assert "max_cost_usd" in block.text
