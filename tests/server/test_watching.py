"""The watcher inside the server, and how its news reach the person."""

import json
import threading
from datetime import timedelta
from pathlib import Path

import pytest
from mcp import Client
from support.staging import Stage
from support.two_sides import trained_at_stash, two_sides

from stash_mcp.backends.base import Backend, RunOrder
from stash_mcp.server.app import SkillServer
from stash_mcp.server.watching import watch_in_background

PATIENCE_SECONDS = 30
BETTER = (("Answer.", 0.4), ("Ask for the order number.", 0.6))


def skill_file(stage: Stage) -> Path:
    return stage.settings.project_dir / ".claude" / "skills" / "polite-support" / "SKILL.md"


@pytest.mark.anyio
async def test_the_next_answer_of_any_tool_tells_what_was_installed_and_only_that_one(
    stage: Stage, server: SkillServer
) -> None:
    stage.finished(*BETTER)
    [notice] = stage.backend.reconcile()
    async with Client(server) as client:
        first = await client.call_tool("list_traces", {})
        second = await client.call_tool("list_traces", {})
    assert first.structured_content is not None
    [told] = first.structured_content["notices"]
    assert told.startswith(f"{notice.note} A running Claude Code sees it if")
    assert [block.text for block in first.content if block.type == "text"][-1] == told
    assert "notices" not in json.dumps(second.structured_content)


@pytest.mark.anyio
async def test_a_refused_call_keeps_the_news_for_the_next_one(
    stage: Stage, server: SkillServer
) -> None:
    stage.finished(*BETTER)
    stage.backend.reconcile()
    async with Client(server) as client:
        refused = await client.call_tool("get_run", {"run_id": "nothing"})
        answer = await client.call_tool("list_traces", {})
    assert refused.is_error
    assert "notices" in (answer.structured_content or {})


def test_a_finished_run_is_installed_while_a_session_is_open(stage: Stage) -> None:
    seen = threading.Event()

    class Looking:
        def __call__(self) -> Backend:
            seen.set()
            return stage.backend

    stage.finished(*BETTER)
    stop = watch_in_background(Looking(), stage.settings.home, head_start=0)
    assert seen.wait(PATIENCE_SECONDS)
    pause = threading.Event()
    for _ in range(PATIENCE_SECONDS * 10):
        if skill_file(stage).exists():
            break
        pause.wait(0.1)
    stop.set()
    assert skill_file(stage).read_text(encoding="utf-8").endswith("Ask for the order number.")


def test_it_makes_no_library_where_there_is_none(tmp_path: Path) -> None:
    def open_backend() -> Backend:
        raise AssertionError("nobody has used it yet")

    stop = watch_in_background(open_backend, tmp_path / "home", head_start=0)
    stop.wait(0.5)
    stop.set()
    assert not (tmp_path / "home").exists()


def test_a_run_that_ended_at_stash_is_installed_though_none_was_ever_done_here(
    tmp_path: Path,
) -> None:
    with two_sides(tmp_path) as both:
        order = RunOrder(reward_model_id=trained_at_stash(both), task_model="openai/small")
        both.backend.start_run(order)
        both.end_run("stash")
        both.stage.now += timedelta(seconds=10)
        assert not both.stage.settings.runs_dir.exists()
        stop = watch_in_background(lambda: both.backend, both.stage.settings.home, head_start=0)
        pause = threading.Event()
        for _ in range(PATIENCE_SECONDS * 20):
            if both.backend.known_runs()[0].install_state == "installed":
                break
            pause.wait(0.05)
        stop.set()
        assert both.backend.known_runs()[0].install_state == "installed"
