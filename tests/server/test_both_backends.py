"""Every tool, on this machine and at Stash, with the same assertions."""

import ast
import json
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from mcp.types import TextContent
from stand_in_stash import Odd
from support.staging import conversation
from support.two_sides import TwoSides, two_sides

from stash_mcp.server.app import build_server
from stash_mcp.server.changes import Changed, Changes, Interest
from stash_mcp.server.resource_uris import run_uri
from stash_mcp.settings import BackendName

pytestmark = pytest.mark.anyio

COMMENT = "Ask for the order number first."


@dataclass
class Desk:
    """A client of the server, and which backend it is about."""

    both: TwoSides
    client: Client
    where: BackendName

    async def call(self, tool: str, **arguments: object) -> dict[str, Any]:
        answer = await self.client.call_tool(tool, arguments)
        [block] = [row for row in answer.content if isinstance(row, TextContent)][:1]
        assert not answer.is_error, block.text
        assert self.both.stash.key not in answer.model_dump_json()
        return answer.structured_content

    async def refused(self, tool: str, **arguments: object) -> str:
        answer = await self.client.call_tool(tool, arguments)
        [block] = answer.content
        assert isinstance(block, TextContent)
        assert answer.is_error, block.text
        assert "unexpected" not in block.text
        assert self.both.stash.key not in block.text
        return block.text

    async def reviewed(self) -> list[str]:
        """Eight conversations, every second one rated down; their ids."""
        lines = [json.dumps(conversation(f"c-{number}")) for number in range(8)]
        imported = await self.call("import_traces", data="\n".join(lines), backend=self.where)
        for number, trace_id in enumerate(imported["trace_ids"]):
            rating = "down" if number % 2 else "up"
            words = f"{COMMENT} Case {number}."
            await self.call(
                "annotate_trace", trace_id=trace_id, step=1, rating=rating, comment=words
            )
        return list(imported["trace_ids"])

    async def trained(self) -> str:
        ids = await self.reviewed()
        model = await self.call("train_reward_model", trace_ids=ids, name="tone")
        self.both.end_training(self.where)
        return str(model["reward_model_id"])

    async def finished(self, **order: object) -> str:
        model = await self.trained()
        started = await self.call(
            "start_gepa_run", reward_model_id=model, task_model="openai/small", **order
        )
        self.both.end_run(self.where)
        return str(started["run_id"])

    def skill_file(self, name: str) -> Path:
        project = self.both.stage.settings.project_dir
        return project / ".claude" / "skills" / name / "SKILL.md"


@pytest.fixture(params=["local", "stash"])
def where(request: pytest.FixtureRequest) -> BackendName:
    return request.param


@pytest.fixture
def both(tmp_path: Path) -> Iterator[TwoSides]:
    with two_sides(tmp_path) as opened:
        yield opened


@pytest.fixture
async def desk(both: TwoSides, where: BackendName) -> AsyncIterator[Desk]:
    stage = both.stage
    server = build_server(
        lambda: both.backend, stage.settings.project_dir, clock=stage.clock, poll_seconds=0.01
    )
    async with Client(server) as client:
        yield Desk(both, client, where)


@pytest.fixture
async def at_stash(both: TwoSides) -> AsyncIterator[Desk]:
    stage = both.stage
    server = build_server(
        lambda: both.backend, stage.settings.project_dir, clock=stage.clock, poll_seconds=0.01
    )
    async with Client(server) as client:
        yield Desk(both, client, "stash")


# --- conversations ---


async def test_what_is_imported_is_listed_and_read(desk: Desk) -> None:
    lines = "\n".join(json.dumps(conversation(f"c-{number}")) for number in range(3))
    imported = await desk.call("import_traces", data=lines, backend=desk.where)
    assert (imported["format"], imported["imported"]) == ("stash", 3)
    assert imported["backend"] == desk.where
    listed = await desk.call("list_traces", backend=desk.where)
    assert {row["trace_id"] for row in listed["traces"]} == set(imported["trace_ids"])
    assert listed["total"] == 3
    read = await desk.call("get_trace", trace_id=imported["trace_ids"][0])
    assert read["trace_id"] == imported["trace_ids"][0]
    assert read["title"] == "Conversation c-0"
    assert [(step["step"], step["role"]) for step in read["steps"]] == [
        (0, "user"),
        (1, "assistant"),
    ]
    assert read["steps"][1]["content"] == "Tell me the order number, please."


async def test_importing_twice_makes_nothing_twice(desk: Desk) -> None:
    line = json.dumps({"messages": [{"role": "user", "content": "Hi"}] * 2})
    first = await desk.call("import_traces", data=line, backend=desk.where)
    again = await desk.call("import_traces", data=line, backend=desk.where)
    assert first["format"] == again["format"] == "openai_chat"
    assert first["trace_ids"] == again["trace_ids"]
    assert (await desk.call("list_traces", backend=desk.where))["total"] == 1


async def test_a_file_that_is_no_conversation_is_refused_and_nothing_is_stored(desk: Desk) -> None:
    said = await desk.refused("import_traces", data='{"no": 1}', backend=desk.where)
    assert "fits none of the 3 formats" in said
    # Only Stash reads more.
    assert ("where the format is named: otel" in said) == (desk.where == "stash")
    assert (await desk.call("list_traces", backend=desk.where))["total"] == 0


async def test_the_list_is_paged_and_searched(desk: Desk) -> None:
    await desk.reviewed()
    first = await desk.call("list_traces", limit=5, backend=desk.where)
    rest = await desk.call("list_traces", limit=5, offset=first["next_offset"], backend=desk.where)
    ids = [row["trace_id"] for row in (*first["traces"], *rest["traces"])]
    assert len(set(ids)) == first["total"] == 8
    found = await desk.call("list_traces", text="conversation c-3", backend=desk.where)
    assert [row["title"] for row in found["traces"]] == ["Conversation c-3"]
    none = await desk.call("list_traces", reviewed="uncommented", backend=desk.where)
    assert none["total"] == 0


async def test_a_comment_stands_on_its_step_with_its_quote_and_counts(desk: Desk) -> None:
    line = json.dumps(conversation("c-0"))
    [id] = (await desk.call("import_traces", data=line, backend=desk.where))["trace_ids"]
    made = await desk.call(
        "annotate_trace", trace_id=id, step=1, rating="down", comment=COMMENT, quote="order number"
    )
    assert made["trace_id"] == id
    row = made["annotation"]
    assert (row["step"], row["rating"], row["comment"]) == (1, "down", COMMENT)
    [shown] = (await desk.call("get_trace", trace_id=id))["steps"][1]["annotations"]
    assert shown["id"] == row["id"]
    assert shown["quote"] == "order number"
    [counted] = (await desk.call("list_traces", backend=desk.where))["traces"]
    assert (counted["positive"], counted["negative"], counted["comments"]) == (0, 1, 1)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({}, "has neither a rating nor a comment"),
        ({"step": 9, "rating": "up"}, "there are 2 steps"),
        ({"step": 1, "comment": "x", "quote": "not there"}, "does not contain"),
        ({"comment": "x", "quote": "order"}, "without naming its step"),
    ],
)
async def test_an_annotation_that_does_not_fit_is_refused_in_the_same_words(
    desk: Desk, arguments: dict[str, object], says: str
) -> None:
    line = json.dumps(conversation("c-0"))
    [id] = (await desk.call("import_traces", data=line, backend=desk.where))["trace_ids"]
    assert says in await desk.refused("annotate_trace", trace_id=id, **arguments)
    assert (await desk.call("get_trace", trace_id=id))["annotations"] == []


async def test_a_wrong_label_is_flagged_and_the_mark_taken_back(desk: Desk) -> None:
    line = json.dumps(conversation("c-0"))
    [id] = (await desk.call("import_traces", data=line, backend=desk.where))["trace_ids"]
    made = await desk.call("annotate_trace", trace_id=id, step=1, rating="up")
    name = made["annotation"]["id"]
    flagged = await desk.call("flag_annotation", annotation_id=name, note="A slip.")
    assert (flagged["annotation"]["step"], flagged["annotation"]["label_error"]) == (1, True)
    [counted] = (await desk.call("list_traces", backend=desk.where))["traces"]
    assert counted["positive"] == 0
    back = await desk.call("flag_annotation", annotation_id=name, flagged=False)
    assert "label_error" not in back["annotation"]


# --- reward models and runs ---


async def test_a_training_is_followed_to_its_end_and_listed(desk: Desk) -> None:
    ids = await desk.reviewed()
    started = await desk.call("train_reward_model", trace_ids=ids, name="tone")
    assert (started["status"], started["traces"]) == ("queued", 8)
    id = started["reward_model_id"]
    waiting = await desk.call("get_run", run_id=id)
    assert (waiting["kind"], waiting["status"]) == ("training", "queued")
    desk.both.end_training(desk.where)
    ended = await desk.call("get_run", run_id=id, wait_seconds=5, until="end")
    assert ended["status"] == "succeeded"
    assert ended["training"]["name"] == "tone"
    assert ended["training"]["metrics"]["epochs"] == 1
    assert id in ended["next"]
    for chosen in ("default", desk.where):
        [row] = (await desk.call("list_reward_models", backend=chosen))["reward_models"]
        assert (row["reward_model_id"], row["name"]) == (id, "tone")


async def test_a_run_is_started_followed_and_read(desk: Desk) -> None:
    model = await desk.trained()
    started = await desk.call("start_gepa_run", reward_model_id=model, task_model="openai/small")
    assert started["status"] == "queued"
    assert started["existing"] is False
    assert started["plan_in_words"]
    assert "is installed into" in started["at_the_end"]
    id = started["run_id"]
    again = await desk.call("start_gepa_run", reward_model_id=model, task_model="openai/small")
    assert (again["run_id"], again["existing"]) == (id, True)
    desk.both.end_run(desk.where)
    ended = await desk.call("get_run", run_id=id, wait_seconds=5, until="end")
    run = ended["run"]
    assert (ended["status"], run["reward_model_id"]) == ("succeeded", model)
    assert run["best_score"] > run["seed_score"]
    assert run["best_candidate"] == 1
    assert ("heldout" in run) == (desk.where == "local")
    assert ended["verdict"]
    [row] = (await desk.call("list_runs"))["runs"]
    assert (row["run_id"], row["status"], row["skill_name"]) == (id, "succeeded", run["skill_name"])


async def test_the_candidates_are_numbered_from_the_seed_and_read_whole(desk: Desk) -> None:
    id = await desk.finished(install="off")
    listed = await desk.call("list_candidates", run_id=id)
    assert [row["candidate"] for row in listed["candidates"]] == [1, 0]
    assert listed["candidates"][0]["gain"] > 0
    one = await desk.call("list_candidates", run_id=id, candidate=1)
    assert one["text"]["skill"].startswith("---\nname: ")
    assert one["text"]["diff"].startswith("--- candidate 0")
    assert "no candidate 7" in await desk.refused("list_candidates", run_id=id, candidate=7)


async def test_a_candidate_is_installed_shown_with_its_origin_and_taken_away(desk: Desk) -> None:
    id = await desk.finished(install="off")
    text = (await desk.call("list_candidates", run_id=id, candidate=1))["text"]["skill"]
    dry = await desk.call("install_skill", run_id=id, dry_run=True)
    assert not desk.skill_file(dry["name"]).exists()
    done = await desk.call("install_skill", run_id=id)
    assert (done["run_id"], done["candidate"]) == (id, 1)
    file = desk.skill_file(done["name"])
    assert file.read_bytes() == text.encode()
    [row] = (await desk.call("list_installed_skills"))["skills"]
    assert (row["run_id"], row["state"]) == (id, "current")
    assert row["reward_model_id"].startswith("stash:" if desk.where == "stash" else "rm-")
    assert row["gain"] > 0
    await desk.call("install_skill", run_id=id, candidate=0)
    assert file.read_bytes() != text.encode()
    await desk.call("rollback_skill", skill=done["name"])
    assert file.read_bytes() == text.encode()
    await desk.call("uninstall_skill", skill=done["name"])
    assert not file.exists()


async def test_a_finished_skill_is_installed_by_itself_once_and_told_once(desk: Desk) -> None:
    id = await desk.finished()
    desk.both.stage.now += desk.both.stage.now.resolution * 10**9
    [notice] = desk.both.backend.reconcile()
    assert (notice.run_id, notice.state) == (id, "installed")
    assert desk.both.backend.reconcile() == []
    told = await desk.call("list_traces", backend=desk.where)
    assert id in told["notices"][0]
    where = "held-out conversations" if desk.where == "local" else "conversations optimised on"
    assert where in told["notices"][0]
    assert "notices" not in await desk.call("list_traces", backend=desk.where)
    state = await desk.call("get_run", run_id=id)
    assert "is installed" in state["run"]["installing"]


async def test_a_report_and_a_candidate_are_read_by_address(desk: Desk) -> None:
    id = await desk.finished(install="off")
    [report] = (await desk.client.read_resource(f"stash://runs/{id}/report")).contents
    assert f"# Run {id}" in report.text
    assert ("held-out" in report.text) is True
    [state] = (await desk.client.read_resource(f"stash://runs/{id}")).contents
    assert json.loads(state.text)["status"] == "succeeded"
    address = f"stash://runs/{id}/candidates/1/SKILL.md"
    [skill] = (await desk.client.read_resource(address)).contents
    assert skill.text.startswith("---\nname: ")


async def test_an_unknown_id_is_called_that(desk: Desk) -> None:
    unknown = "1b4e28ba-2fa1-11d2-883f-0016d3cca427"
    id = f"stash:{unknown}" if desk.where == "stash" else unknown
    assert "There is no run and no reward model" in await desk.refused("get_run", run_id=id)
    for tool, name in (("get_trace", "trace_id"), ("list_candidates", "run_id")):
        assert await desk.refused(tool, **{name: id})
    said = await desk.refused("start_gepa_run", reward_model_id=id, task_model="openai/small")
    assert said


async def test_an_unknown_run_is_neither_cancelled_resumed_nor_written_for(desk: Desk) -> None:
    unknown = "1b4e28ba-2fa1-11d2-883f-0016d3cca427"
    id = f"stash:{unknown}" if desk.where == "stash" else unknown
    said = await desk.refused("cancel_run", run_id=id)
    assert f"There is no run and no reward model '{id}'. list_runs" in said
    # True for every id of Stash, so it is not asked whether there is this one.
    resumed = "Stash cannot carry on" if desk.where == "stash" else "There is no run"
    assert f"{resumed} '{id}'" in await desk.refused("resume_run", run_id=id)
    written = f"The run '{id}' of Stash asks no agent"
    if desk.where == "local":
        written = f"There is no run '{id}'. List the runs"
    assert written in await desk.refused("get_reflection", run_id=id)
    assert written in await desk.refused("submit_reflection", run_id=id, number=1, body="x")


async def test_a_waiting_run_is_cancelled_here_and_then_resumed(desk: Desk) -> None:
    model = await desk.trained()
    order = {"reward_model_id": model, "task_model": "openai/small"}
    id = (await desk.call("start_gepa_run", **order))["run_id"]
    if desk.where == "stash":
        assert "cannot cancel" in await desk.refused("cancel_run", run_id=id)
        assert "Stash cannot carry on" in await desk.refused("resume_run", run_id=id)
        assert (await desk.call("get_run", run_id=id))["status"] == "queued"
        return
    assert id in json.dumps(await desk.call("cancel_run", run_id=id))
    assert (await desk.call("get_run", run_id=id))["status"] == "cancelled"
    await desk.call("resume_run", run_id=id)
    assert (await desk.call("get_run", run_id=id))["status"] == "queued"


# --- both together ---


@pytest.fixture
def by_environment(both: TwoSides, monkeypatch: pytest.MonkeyPatch) -> None:
    """For the tools that read it anew with each call."""
    monkeypatch.setenv("STASH_MCP_HOME", str(both.stage.settings.home))
    monkeypatch.setenv("STASH_URL", both.stash.base_url)
    monkeypatch.setenv("STASH_API_KEY", both.stash.key)


@pytest.mark.usefixtures("by_environment")
async def test_a_library_and_stash_have_the_same_after_both_exchanges(desk: Desk) -> None:
    await desk.reviewed()
    for action in ("pull", "push"):
        assert (await desk.call("sync_with_stash", action=action))["in_words"]
    for side in ("local", "stash"):
        listed = await desk.call("list_traces", backend=side)
        assert listed["total"] == 8
        assert sum(row["comments"] for row in listed["traces"]) == 8
    for action in ("pull", "push"):
        again = await desk.call("sync_with_stash", action=action)
        assert "held" not in again or again["held"] == []
    said = await desk.refused("sync_with_stash", action="rescore")
    assert "rescore needs the id of a run" in said


@pytest.mark.usefixtures("by_environment")
async def test_the_doctor_looks_at_the_same_things(desk: Desk) -> None:
    before = await desk.call("doctor")
    await desk.reviewed()
    after = await desk.call("doctor")
    names = [row["name"] for row in after["checks"]]
    assert names == [row["name"] for row in before["checks"]]
    assert {"python", "home", "stash"} <= set(names)
    assert len(set(names)) == len(names)


async def test_no_tool_is_left_out_here(at_stash: Desk) -> None:
    offered = {tool.name for tool in (await at_stash.client.list_tools()).tools}
    assert _called_on_both() == offered


def _called_on_both() -> set[str]:
    """Tools that tests of this module which run on each side call by name."""
    tests = (
        node
        for node in ast.parse(Path(__file__).read_text()).body
        if isinstance(node, ast.AsyncFunctionDef) and "desk" in [a.arg for a in node.args.args]
    )
    calls = (node for test in tests for node in ast.walk(test) if isinstance(node, ast.Call))
    return {
        first.value
        for call in calls
        if isinstance(call.func, ast.Attribute) and call.func.attr in ("call", "refused")
        for first in call.args[:1]
        if isinstance(first, ast.Constant)
    }


# --- what Stash cannot do ---


async def test_what_stash_cannot_do_with_a_run_is_refused_with_what_to_do(at_stash: Desk) -> None:
    model = await at_stash.trained()
    order = {"reward_model_id": model, "task_model": "openai/small"}
    id = (await at_stash.call("start_gepa_run", **order))["run_id"]
    assert "cannot cancel" in await at_stash.refused("cancel_run", run_id=id)
    assert "Start another run" in await at_stash.refused("resume_run", run_id=id)
    assert "asks no agent" in await at_stash.refused("get_reflection", run_id=id)
    said = await at_stash.refused("submit_reflection", run_id=id, number=1, body="x")
    assert "asks no agent" in said
    assert "only a finished run" in await at_stash.refused("install_skill", run_id=id)
    listed = await at_stash.call("list_candidates", run_id=id)
    assert listed["candidates"] == []
    state = await at_stash.call("get_run", run_id=id)
    assert state["events"] == []
    invented = {"metric_calls", "proposals", "candidates", "task_usage", "reflection_usage"}
    assert not invented & state["run"].keys()
    assert not {"phase", "done", "total", "estimate_seconds"} & state.keys()


@pytest.mark.parametrize(
    "given",
    [
        {"reflection_api_base": "https://example.org/v1"},
        {"skill_name": "tone"},
        {"skill_description": "Use it."},
        {"trace_ids": ["stash:x"]},
        {"random_seed": 3},
        {"seed": "installed"},
        {"minibatch_size": 5},
        {"proposals_at_once": 2},
        {"max_concurrency": 2},
        {"max_cost_usd": 1.0},
        {"max_seconds": 60.0},
        {"no_improvement_for": 3},
        {"fresh": True},
    ],
    ids=lambda given: next(iter(given)),
)
async def test_an_order_that_stash_cannot_take_is_refused_by_name_before_anything_is_sent(
    at_stash: Desk, given: dict[str, object]
) -> None:
    order = {"reward_model_id": "stash:1b4e28ba-2fa1-11d2-883f-0016d3cca427"}
    said = await at_stash.refused("start_gepa_run", **order, task_model="openai/small", **given)
    assert f"cannot take {next(iter(given))}" in said
    assert at_stash.both.stash.asked == []


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"task_model": "openai/x", "reflection_model": "agent"}, "this machine only"),
        ({"task_model": "openai/x", "reflection_model": "builtin/comments"}, "this machine only"),
        ({"task_model": "claude-code/haiku"}, "this machine only"),
        ({"task_model": "openai/x", "task_api_base": "http://localhost:8000/v1"}, "cannot reach"),
        ({"task_model": "openai/x", "task_api_base": "http://127.0.0.1/v1"}, "cannot reach"),
        ({"task_model": "openai/x", "install_agents": ["nobody"]}, "nobody"),
    ],
)
async def test_a_model_that_stash_cannot_reach_is_refused_before_anything_is_sent(
    at_stash: Desk, given: dict[str, object], says: str
) -> None:
    order = {"reward_model_id": "stash:1b4e28ba-2fa1-11d2-883f-0016d3cca427"}
    assert says in await at_stash.refused("start_gepa_run", **order, **given)
    assert at_stash.both.stash.asked == []


async def test_what_a_training_of_stash_takes_and_does_not_take(at_stash: Desk) -> None:
    ids = await at_stash.reviewed()
    asked = len(at_stash.both.stash.asked)
    said = await at_stash.refused("train_reward_model", trace_ids=ids, learning_rate=0.1)
    assert "learning_rate" in said
    folder = str(at_stash.both.stage.settings.project_dir)
    said = await at_stash.refused("train_reward_model", trace_ids=ids, base_model=folder)
    assert "folder of this machine" in said
    said = await at_stash.refused("import_traces", annotations_data="{}", backend="stash")
    assert "no file of annotations" in said
    said = await at_stash.refused("annotate_trace", trace_id=ids[0], rating="up", author="me")
    assert "Leave author out" in said
    assert len(at_stash.both.stash.asked) == asked
    await at_stash.call("train_reward_model", backend="stash", training_config={"lora": True})
    [job] = at_stash.both.stash.world.models.values()
    assert job.given["training_config"] == {"lora": True}
    assert len(job.given["trace_ids"]) == 8


async def test_a_failed_run_of_stash_gives_its_reason_and_no_resume(at_stash: Desk) -> None:
    model = await at_stash.trained()
    at_stash.both.stash.world.fates = ["The task model refused the key sk-abcdefgh12345678."]
    order = {"reward_model_id": model, "task_model": "openai/small"}
    id = (await at_stash.call("start_gepa_run", **order))["run_id"]
    at_stash.both.end_run("stash")
    state = await at_stash.call("get_run", run_id=id)
    assert (state["status"], "sk-abc" in json.dumps(state)) == ("failed", False)
    assert "The task model refused the key" in state["reason"]
    assert "resume" not in state["next"]


async def test_a_wait_for_stash_asks_seldom(at_stash: Desk) -> None:
    model = await at_stash.trained()
    order = {"reward_model_id": model, "task_model": "openai/small"}
    id = (await at_stash.call("start_gepa_run", **order))["run_id"]
    at_stash.both.stash.asked.clear()
    state = await at_stash.call("get_run", run_id=id, wait_seconds=1)
    assert state["status"] == "queued"
    # A run of this machine is looked at a hundred times at this pace.
    assert 2 <= len(at_stash.both.stash.asked) <= 7


async def test_lists_say_why_those_of_stash_are_missing(at_stash: Desk) -> None:
    at_stash.both.stash.always = Odd(reset=True)
    for tool in ("list_runs", "list_reward_models"):
        assert "Stash could not be asked" in (await at_stash.call(tool))["missing"]
    said = await at_stash.refused("list_reward_models", backend="stash")
    assert "broke off" in said or "cannot be reached" in said
    assert "missing" not in await at_stash.call("list_reward_models", backend="local")


async def test_resources_are_listed_and_completed_without_asking_stash(at_stash: Desk) -> None:
    id = await at_stash.finished(install="off")
    await at_stash.call("get_run", run_id=id)
    at_stash.both.stash.asked.clear()
    listed = (await at_stash.client.list_resources()).resources
    assert f"report-{id}" in [row.name for row in listed]
    assert at_stash.both.stash.asked == []


async def test_a_client_that_listens_to_a_run_of_stash_costs_a_question_now_and_then(
    at_stash: Desk,
) -> None:
    model = await at_stash.trained()
    order = {"reward_model_id": model, "task_model": "openai/small"}
    id = (await at_stash.call("start_gepa_run", **order))["run_id"]
    now = 0.0
    changes = Changes(lambda: at_stash.both.backend, lambda: now)
    interest = Interest(frozenset({run_uri(id)}), lists=True)
    changes.remember(interest)
    at_stash.both.stash.asked.clear()
    for _ in range(7):
        now += 2.0
        assert changes.look(interest) == Changed()
    assert at_stash.both.stash.asked == []
    at_stash.both.end_run("stash")
    now += 2.0
    changed = changes.look(interest)
    assert changed == Changed((run_uri(id),), lists=True)
    assert len(at_stash.both.stash.asked) == 1
