"""Runs and trainings as tasks (SEP-2663): handles, states and results, over a real library."""

import json
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any, Literal

import anyio
import httpx2
import pytest
from mcp import Client, MCPError, StdioServerParameters
from mcp.client.extension import ClaimContext, ClientExtension, ResultClaim
from mcp.types import (
    HEADER_MISMATCH,
    INVALID_PARAMS,
    METHOD_NOT_FOUND,
    MISSING_REQUIRED_CLIENT_CAPABILITY,
    CallToolResult,
    Request,
    Result,
    SubscriptionFilter,
    SubscriptionsListenRequest,
    SubscriptionsListenRequestParams,
    SubscriptionsListenResult,
    TextContent,
)
from pydantic import ConfigDict
from support.staging import METRICS, Stage, result

from stash_mcp.runs.reflections import Question, ReflectionStore
from stash_mcp.server.app import SkillServer
from stash_mcp.server.http import open_server, serve_app
from stash_mcp.server.listening import HttpOptions
from stash_mcp.server.requests import TASKS_EXTENSION
from stash_mcp.server.run_results import StartResult
from stash_mcp.server.tasks_extension import TaskParams, TaskUpdateParams
from stash_mcp.server.training_results import TrainResult
from stash_mcp.storage.database import Database
from stash_mcp.storage.files import try_lock

pytestmark = pytest.mark.anyio

ROOT = Path(__file__).parents[2]
BODIES = (("Be polite.", 0.4), ("Ask for the order number.", 0.6))


class Handle(Result):
    """A task as it stands on the wire, whatever it holds."""

    model_config = ConfigDict(extra="allow")
    result_type: Literal["task"] = "task"


class TaskClient(ClientExtension):
    """Declares the extension, and leaves the handle to the test."""

    identifier = TASKS_EXTENSION

    def claims(self) -> Sequence[ResultClaim[Any]]:
        return [ResultClaim(result_type="task", model=Handle, resolve=_not_here)]


async def _not_here(_handle: Handle, _context: ClaimContext) -> CallToolResult:
    raise AssertionError("the tests follow tasks themselves")


class GetTask(Request[TaskParams, Literal["tasks/get"]]):
    method: Literal["tasks/get"] = "tasks/get"
    name_param = "taskId"
    params: TaskParams


class CancelTask(Request[TaskParams, Literal["tasks/cancel"]]):
    method: Literal["tasks/cancel"] = "tasks/cancel"
    name_param = "taskId"
    params: TaskParams


class UpdateTask(Request[TaskUpdateParams, Literal["tasks/update"]]):
    method: Literal["tasks/update"] = "tasks/update"
    name_param = "taskId"
    params: TaskUpdateParams


class Wire(Result):
    model_config = ConfigDict(extra="allow")


def facts(answer: Result) -> dict[str, Any]:
    """The fields of the answer that are no metadata of the server's."""
    known = answer.model_dump(by_alias=True, exclude={"meta"}, exclude_unset=True)
    return {key: value for key, value in known.items() if key != "_meta"}


async def start(client: Client, **arguments: object) -> dict[str, Any]:
    tool = "start_gepa_run" if arguments else "train_reward_model"
    return facts(await client.session.call_tool(tool, arguments, allow_claimed=True))


async def get(client: Client, task_id: str) -> dict[str, Any]:
    request = GetTask(params=TaskParams(task_id=task_id))
    return facts(await client.session.send_request(request, Wire))


async def cancel(client: Client, task_id: str) -> dict[str, Any]:
    request = CancelTask(params=TaskParams(task_id=task_id))
    return facts(await client.session.send_request(request, Wire))


async def update(client: Client, task_id: str) -> dict[str, Any]:
    request = UpdateTask(params=TaskUpdateParams(task_id=task_id, input_responses={"none": {}}))
    return facts(await client.session.send_request(request, Wire))


def order(stage: Stage, **more: object) -> dict[str, object]:
    """Arguments of start_gepa_run, on a reward model trained for it."""
    stage.conversations()
    return {"reward_model_id": stage.trained().id, "task_model": "openai/small", **more}


# --- from the call to the result ---


async def test_a_run_is_a_task_whose_result_is_the_answer_with_its_outcome(
    server: SkillServer, stage: Stage
) -> None:
    arguments = order(stage)
    async with Client(server, extensions=[TaskClient()]) as client:
        extensions = client.server_capabilities.extensions or {}
        handle = await start(client, **arguments)
        run_id = handle["taskId"]
        waiting = await get(client, run_id)
        looked = await client.call_tool("get_run", {"run_id": run_id})
        stage.begin()
        stage.score(run_id, *BODIES)
        stage.report(run_id, phase="optimising", done=3, total=9, candidates=2)
        working = await get(client, run_id)
        stage.store.succeed(run_id, json.dumps(result(BODIES)))
        over = await get(client, run_id)
    assert extensions[TASKS_EXTENSION] == {}
    message = handle.pop("statusMessage")
    assert message.startswith(f"Run {run_id} has begun. 12 conversations to optimise on")
    assert f'get_run(run_id="{run_id}") shows where it stands' in message
    # Claude Code does not show the message of a task to its model.
    plan = (looked.structured_content or {})["run"]["plan_in_words"]
    assert " ".join(plan) in message
    assert handle == {
        "resultType": "task",
        "taskId": run_id,
        "status": "working",
        "createdAt": handle["createdAt"],
        "lastUpdatedAt": handle["createdAt"],
        "pollIntervalMs": 5000,
        "ttlMs": None,
    }
    assert stage.backend.get_run(run_id).created_at.isoformat() == handle["createdAt"]
    assert waiting == {**handle, "resultType": "complete", "statusMessage": "place 1 in the queue"}
    assert working["statusMessage"] == "optimising 3/9"
    assert (over["status"], over["resultType"]) == ("completed", "complete")
    answer = CallToolResult.model_validate(over["result"])
    ended = StartResult.model_validate(answer.structured_content)
    [block] = answer.content
    assert isinstance(block, TextContent)
    assert json.loads(block.text) == answer.structured_content
    assert not answer.is_error
    assert (ended.run_id, ended.status) == (run_id, "succeeded")
    assert ended.existing is None
    assert (ended.outcome or "").startswith(
        "The skill helped; how far is uncertain. The best candidate is number 1."
    )
    assert f'list_candidates(run_id="{run_id}")' in ended.next


async def test_a_training_is_a_task_too(server: SkillServer, stage: Stage) -> None:
    stage.conversations()
    async with Client(server, extensions=[TaskClient()]) as client:
        handle = await start(client)
        model_id = handle["taskId"]
        stage.begin()
        stage.store.succeed(model_id, json.dumps({"metrics": METRICS}))
        over = await get(client, model_id)
    assert handle["statusMessage"].startswith(
        f"Training {model_id} learns from 12 conversations. get_run("
    )
    ended = TrainResult.model_validate(over["result"]["structuredContent"])
    assert (ended.reward_model_id, ended.status) == (model_id, "succeeded")
    assert ended.outcome == "The reward model: ranks 2 of 2 held-out pairs right, too few to tell."
    assert f'start_gepa_run(reward_model_id="{model_id}"' in ended.next


async def test_a_failed_run_is_a_completed_task_with_an_error_in_its_result(
    server: SkillServer, stage: Stage
) -> None:
    run = stage.failed(*BODIES)
    async with Client(server, extensions=[TaskClient()]) as client:
        over = await get(client, run.id)
    assert over["status"] == "completed"
    assert over["result"]["isError"] is True
    [block] = over["result"]["content"]
    assert block["text"].startswith(f"{run.id} failed: The task model refused the key. Mend what")
    assert f'resume_run(run_id="{run.id}")' in block["text"]


async def test_cancelling_the_task_cancels_the_run_and_again_changes_nothing(
    server: SkillServer, stage: Stage
) -> None:
    run = stage.running(*BODIES)
    over = stage.trained()
    async with Client(server, extensions=[TaskClient()]) as client:
        acknowledged = [await cancel(client, run.id), await cancel(client, run.id)]
        acknowledged.append(await cancel(client, over.id))
        state = await get(client, run.id)
    assert acknowledged == [{"resultType": "complete"}] * 3
    assert stage.backend.get_run(run.id).status == "cancelled"
    assert stage.backend.get_reward_model(over.id).status == "succeeded"
    assert state["status"] == "cancelled"
    assert "result" not in state
    assert state["statusMessage"].startswith("Cancelled. list_candidates and install_skill take")


async def test_an_update_is_acknowledged_and_changes_nothing(
    server: SkillServer, stage: Stage
) -> None:
    run = stage.running(*BODIES)
    async with Client(server, extensions=[TaskClient()]) as client:
        before = await get(client, run.id)
        assert await update(client, run.id) == {"resultType": "complete"}
        assert await get(client, run.id) == before


# --- where the call's own answer serves better ---


async def test_a_client_that_does_not_declare_it_gets_the_plain_answer_and_no_tasks(
    server: SkillServer, stage: Stage
) -> None:
    arguments = order(stage)
    async with Client(server) as client:
        answer = await client.call_tool("start_gepa_run", arguments)
        run_id = (answer.structured_content or {})["run_id"]
        for ask in (get, cancel, update):
            with pytest.raises(MCPError) as refusal:
                await ask(client, run_id)
            assert refusal.value.code == MISSING_REQUIRED_CLIENT_CAPABILITY
            assert refusal.value.data == {
                "requiredCapabilities": {"extensions": {TASKS_EXTENSION: {}}}
            }
    assert stage.backend.get_run(run_id).status == "queued"


async def test_an_older_protocol_has_no_tasks(server: SkillServer, stage: Stage) -> None:
    arguments = order(stage)
    async with Client(server, mode="legacy", extensions=[TaskClient()]) as client:
        answer = await client.call_tool("start_gepa_run", arguments)
        run_id = (answer.structured_content or {})["run_id"]
        for ask in (get, cancel, update):
            with pytest.raises(MCPError) as refusal:
                await ask(client, run_id)
            assert refusal.value.code == METHOD_NOT_FOUND


async def test_an_equal_run_is_the_same_task_while_it_lasts_and_a_plain_answer_after(
    server: SkillServer, stage: Stage
) -> None:
    arguments = order(stage)
    async with Client(server, extensions=[TaskClient()]) as client:
        first = await start(client, **arguments)
        second = await start(client, **arguments)
        stage.begin()
        stage.score(first["taskId"], *BODIES)
        stage.store.succeed(first["taskId"], json.dumps(result(BODIES)))
        third = await start(client, **arguments)
    assert second["taskId"] == first["taskId"]
    assert second["statusMessage"].startswith("An equal run is there already; new=true starts")
    assert third["structuredContent"]["existing"] is True
    assert third["structuredContent"]["status"] == "succeeded"


async def test_a_refused_call_is_refused_at_once(server: SkillServer, stage: Stage) -> None:
    async with Client(server, extensions=[TaskClient()]) as client:
        answer = await start(client, reward_model_id="none", task_model="openai/small")
    assert answer["isError"] is True


async def test_a_run_that_the_agent_writes_for_is_no_task_that_it_would_sleep_through(
    server: SkillServer, stage: Stage
) -> None:
    arguments = order(stage, reflection_model="agent")
    async with Client(server, extensions=[TaskClient()]) as client:
        answer = await start(client, **arguments)
        run_id = answer["structuredContent"]["run_id"]
        stage.begin()
        question = Question(kind="body", prompt="Improve it.", present="old")
        ReflectionStore(Database(stage.settings.library_path), stage.clock).ask(run_id, question)
        state = await get(client, run_id)
    assert state["status"] == "working"
    assert state["statusMessage"].startswith("It waits for 1 reflection: read get_reflection(")


# --- what is refused ---


async def test_an_unknown_task_is_refused_also_where_there_is_no_library(
    server: SkillServer, stage: Stage
) -> None:
    stage.conversations(1)
    async with Client(server, extensions=[TaskClient()]) as client:
        for ask in (get, cancel, update):
            with pytest.raises(MCPError, match="There is no task 'run-none'") as refusal:
                await ask(client, "run-none")
            assert refusal.value.code == INVALID_PARAMS


async def test_notifications_of_tasks_are_refused_to_a_client_that_does_not_declare_them(
    server: SkillServer,
) -> None:
    filter = SubscriptionFilter.model_validate({"taskIds": ["run-1"]})
    request = SubscriptionsListenRequest(
        params=SubscriptionsListenRequestParams(notifications=filter)
    )
    async with Client(server) as client:
        with pytest.raises(MCPError) as refusal:
            await client.session.send_request(request, SubscriptionsListenResult)
    assert refusal.value.code == MISSING_REQUIRED_CLIENT_CAPABILITY


# --- as a process, and over HTTP ---


async def test_a_task_outlives_the_server_that_started_it(stage: Stage) -> None:
    arguments = order(stage)
    environment = {
        "STASH_MCP_HOME": str(stage.settings.home),
        "CLAUDE_PROJECT_DIR": str(stage.settings.project_dir),
        "PYTHONPATH": str(ROOT),
    }
    parameters = StdioServerParameters(
        command=sys.executable, args=["-m", "stash_mcp", "serve"], env=environment
    )
    # A worker that lives holds this; else the server would start one for the run.
    with try_lock(stage.settings.worker_lock_path) as held:
        assert held
        async with Client(parameters, extensions=[TaskClient()]) as client:
            task_id = (await start(client, **arguments))["taskId"]
        stage.begin()
        stage.score(task_id, *BODIES)
        stage.store.succeed(task_id, json.dumps(result(BODIES)))
        async with Client(parameters, extensions=[TaskClient()]) as client:
            over = await get(client, task_id)
    assert over["status"] == "completed"
    assert over["result"]["structuredContent"]["run_id"] == task_id


@asynccontextmanager
async def serving(stage: Stage) -> AsyncIterator[str]:
    server = open_server(stage.settings, HttpOptions(port=0, asks_for_token=False), None)
    with closing(server.listener):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(serve_app, server.app, server.listener, server.options)
            yield server.url
            tasks.cancel_scope.cancel()


async def post(url: str, task_id: str, headers: Mapping[str, str]) -> httpx2.Response:
    """tasks/get of a client that declares the extension."""
    version = "2026-07-28"
    meta = {
        "io.modelcontextprotocol/protocolVersion": version,
        "io.modelcontextprotocol/clientCapabilities": {"extensions": {TASKS_EXTENSION: {}}},
    }
    body = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tasks/get",
        "params": {"taskId": task_id, "_meta": meta},
    }
    common = {
        "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": version,
        "Mcp-Method": "tasks/get",
    }
    async with httpx2.AsyncClient() as http:
        return await http.post(url, json=body, headers=common | headers)


async def test_over_http_the_header_has_to_name_the_task(stage: Stage) -> None:
    run = stage.finished(*BODIES)
    async with serving(stage) as url:
        async with Client(url, extensions=[TaskClient()]) as client:
            over = await get(client, run.id)
        named = await post(url, run.id, {"Mcp-Name": run.id})
        refused = [await post(url, run.id, headers) for headers in ({}, {"Mcp-Name": "run-none"})]
    assert over["status"] == "completed"
    assert (named.status_code, f'"taskId":"{run.id}"' in named.text) == (200, True)
    for answer in refused:
        assert (answer.status_code, str(HEADER_MISMATCH) in answer.text) == (400, True)
