"""The whole loop through a client, in both eras of the protocol, over a real library."""

import json
from pathlib import Path
from typing import Any, Literal

import pytest
from mcp import Client
from support.staging import (
    METRICS,
    START,
    Stage,
    conversation,
    jsonl,
    result,
    write_checkpoint,
)

from stash_mcp.runs.folder import JobFolder
from stash_mcp.server.app import SkillServer

pytestmark = pytest.mark.anyio

Mode = Literal["auto", "legacy"]


async def call(client: Client, tool: str, **arguments: object) -> dict[str, Any]:
    """The structured content, after checking that the text has the same facts."""
    answer = await client.call_tool(tool, arguments)
    assert not answer.is_error, answer.content
    assert answer.structured_content is not None
    [block] = answer.content
    assert block.type == "text"
    assert json.loads(block.text) == answer.structured_content
    return answer.structured_content


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_a_client_goes_from_a_file_to_an_installed_skill(
    mode: Mode, server: SkillServer, stage: Stage
) -> None:
    project = stage.settings.project_dir
    rows = [conversation(f"c-{number}") for number in range(6)]
    (project / "talks.jsonl").write_bytes(jsonl(rows))
    async with Client(server, mode=mode) as client:
        imported = await call(client, "import_traces", path="talks.jsonl")
        assert (imported["format"], imported["added"]) == ("stash", 6)
        await _review(client)
        model_id = await _train(client, stage)
        run_id = await _run(client, stage, model_id)
        await _install(client, run_id, project)


async def _review(client: Client) -> None:
    for number in range(6):
        said = await call(
            client,
            "annotate_trace",
            trace_id=f"c-{number}",
            step=1,
            rating="down" if number % 2 else "up",
            comment="Ask for the order number.",
            quote="order number",
        )
        assert said["annotation"]["quote"] == "order number"
    shown = await call(client, "get_trace", trace_id="c-1")
    assert shown["steps"][1]["annotations"][0]["rating"] == "down"
    listed = await call(client, "list_traces", reviewed="commented")
    assert (listed["total"], listed["traces"][0]["comments"]) == (6, 1)


async def _train(client: Client, stage: Stage) -> str:
    queued = await call(client, "train_reward_model", name="reviews")
    assert (queued["status"], queued["pairs"]) == ("queued", 9)
    model_id = str(queued["reward_model_id"])
    stage.begin()
    write_checkpoint(JobFolder(stage.settings.reward_models_dir / model_id).model_path)
    stage.store.succeed(model_id, json.dumps({"metrics": METRICS}))
    state = await call(client, "get_run", run_id=model_id, wait_seconds=50)
    assert (state["kind"], state["status"]) == ("training", "succeeded")
    assert state["training"]["metrics"]["eval_accuracy"] == 0.75
    listed = await call(client, "list_reward_models")
    assert listed["reward_models"][0]["heldout_accuracy"] == 0.75
    return model_id


async def _run(client: Client, stage: Stage, model_id: str) -> str:
    started = await call(
        client, "start_gepa_run", reward_model_id=model_id, task_model="openai/small"
    )
    assert started["plan"]["examples"] == 6
    assert "6 conversations to optimise on" in started["plan_in_words"][0]
    run_id = str(started["run_id"])
    stage.begin()
    stage.score(run_id, ("Be polite.", 0.4), ("Ask for the order number.", 0.6))
    stage.store.succeed(run_id, json.dumps(_result()))
    state = await call(client, "get_run", run_id=run_id)
    assert (state["status"], state["run"]["best_candidate"]) == ("succeeded", 1)
    assert state["verdict"].startswith("The skill helped")
    assert f'install_skill(run_id="{run_id}")' in state["next"]
    listed = await call(client, "list_runs")
    assert listed["runs"][0]["run_id"] == run_id
    return run_id


def _result() -> dict[str, object]:
    return result((("Be polite.", 0.4), ("Ask for the order number.", 0.6)))


async def _install(client: Client, run_id: str, project: Path) -> None:
    listed = await call(client, "list_candidates", run_id=run_id)
    best = listed["candidates"][0]
    assert (best["candidate"], best["gain"]) == (1, 0.2)
    shown = await call(client, "list_candidates", run_id=run_id, candidate=1)
    assert "+Ask for the order number." in shown["text"]["diff"]
    installed = await call(client, "install_skill", run_id=run_id)
    path = project / ".claude" / "skills" / "polite-support" / "SKILL.md"
    assert installed["written"][0]["path"] == str(path)
    assert path.read_text(encoding="utf-8") == shown["text"]["skill"]
    again = await call(client, "install_skill", run_id=run_id)
    assert again["written"][0]["action"] == "unchanged"


async def test_text_for_the_import_is_taken_as_it_is(server: SkillServer, stage: Stage) -> None:
    line = jsonl([conversation("inline")]).decode().strip()
    note = {"trace_id": "inline", "rating": 1, "created_at": START.isoformat()}
    async with Client(server) as client:
        # One JSON object is what the SDK would parse by itself, were the parameter not text.
        await call(client, "import_traces", data=line)
        noted = await call(client, "import_traces", annotations_data=json.dumps(note))
        await call(client, "annotate_trace", trace_id="inline", comment="[1, 2]")
    assert (noted["imported"], noted["annotations_added"]) == (0, 1)
    said = [row.comment for row in stage.backend.get_trace("inline").annotations]
    assert "[1, 2]" in said


async def test_a_wrong_annotation_is_marked_and_unmarked(server: SkillServer, stage: Stage) -> None:
    stage.conversations(2)
    annotation = stage.backend.get_trace("c-00").annotations[0]
    async with Client(server) as client:
        marked = await call(
            client, "flag_annotation", annotation_id=annotation.id, note="meant c-01"
        )
        shown = await call(client, "get_trace", trace_id="c-00")
        await call(client, "flag_annotation", annotation_id=annotation.id, flagged=False)
    assert marked["annotation"]["label_error"] is True
    assert shown["annotations"][0]["label_error"] is True
    assert not stage.backend.get_trace("c-00").annotations[0].label_error
