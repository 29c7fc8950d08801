"""A run from the installed skill, and a job that stands still, as tools tell of them."""

import os
from typing import Any

import pytest
from mcp import Client
from support.staging import Stage

from stash_mcp.backends.installations import InstallOrder
from stash_mcp.runs.launcher import worker_log
from stash_mcp.server.app import SkillServer

pytestmark = pytest.mark.anyio

BETTER = (("Be polite.", 0.4), ("Ask first.", 0.6))
ORDER = {"reward_model_id": "rm-1", "task_model": "openai/small"}


async def call(server: SkillServer, tool: str, **arguments: object) -> tuple[bool, Any]:
    """Whether it was refused, and the answer or the words."""
    async with Client(server) as client:
        answer = await client.call_tool(tool, arguments)
    if answer.is_error:
        return True, answer.content[0].text
    return False, answer.structured_content


async def test_the_plan_names_the_installed_skill(server: SkillServer, stage: Stage) -> None:
    [done] = stage.backend.install_skill(InstallOrder(run_id=stage.finished(*BETTER).id))
    refused, started = await call(server, "start_gepa_run", **ORDER, seed="installed")
    assert not refused
    path = done.installation.path
    assert any(f"The seed is the installed {path}." == row for row in started["plan"]["notes"])
    assert stage.backend.get_run(started["run_id"]).request.random_seed == 0


async def test_a_number_is_no_seed(server: SkillServer, stage: Stage) -> None:
    stage.finished(*BETTER)
    refused, words = await call(server, "start_gepa_run", **ORDER, seed="7")
    assert refused
    assert "random_seed" in words
    refused, started = await call(server, "start_gepa_run", **ORDER, random_seed=7)
    assert stage.backend.get_run(started["run_id"]).request.random_seed == 7


async def test_get_run_says_why_no_worker_comes(server: SkillServer, stage: Stage) -> None:
    run = stage.start(stage.finished(*BETTER).request.reward_model_id)
    worker_log(stage.settings).write_text("Traceback\nImportError: no", encoding="utf-8")
    _, fresh = await call(server, "get_run", run_id=run.id)
    assert "stalled" not in fresh
    os.utime(worker_log(stage.settings), (1, 1))
    _, state = await call(server, "get_run", run_id=run.id)
    assert "could not start: ImportError: no" in state["stalled"]


async def test_a_candidate_of_a_failed_run_comes_with_a_warning(
    server: SkillServer, stage: Stage
) -> None:
    run = stage.failed(*BETTER)
    _, state = await call(server, "get_run", run_id=run.id)
    assert "install_skill takes one by its number" in state["next"]
    assert (await call(server, "install_skill", run_id=run.id))[0]
    _, done = await call(server, "install_skill", run_id=run.id, candidate=1)
    assert done["partial"]
    assert done["warning"].startswith("The run failed before its end")


async def test_a_run_whose_skill_is_installed_already_is_not_offered_for_it(
    server: SkillServer, stage: Stage
) -> None:
    run = stage.finished(*BETTER)
    stage.backend.reconcile()
    _, state = await call(server, "get_run", run_id=run.id)
    assert "installed already" in state["next"]
    assert "is installed:" in state["run"]["installing"]
