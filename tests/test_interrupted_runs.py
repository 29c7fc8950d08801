"""Runs that are interrupted: real workers killed, parked and cancelled.

All of them are forked from one process that has loaded the libraries, hence one file.
"""

import itertools
import signal
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from mcp.types import CallToolResult, TextContent
from support.forked_workers import Workers
from support.model_server import ModelServer, Reply, Request, model_server, says
from support.tiny_jobs import BAD, GOOD, notes, talks, tiny_base, tiny_checkpoint
from support.tiny_models import save_tiny_base

from benchmarks.interrupted_runs import Size, disturb
from stash_mcp.backends.base import RunOrder
from stash_mcp.backends.local import LocalBackend
from stash_mcp.models import JobStatus, RunResult
from stash_mcp.optimization.reflection import END, START
from stash_mcp.runs.folder import JobFolder
from stash_mcp.runs.store import JobStore
from stash_mcp.server.app import build_server
from stash_mcp.settings import Settings
from stash_mcp.storage.database import Database

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.timeout(240),
    pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="this system has no SIGKILL"),
]
WORDS = "user assistant hello please no idea asks for the order number says when an answer comes"
HABITS = ("Ask for the order number.", "Say when an answer comes.", "Be brief.")


def test_runs_whose_workers_are_killed_end_as_if_nothing_had_happened(tmp_path: Path) -> None:
    """`make bench` does the same a hundred times and more, at random moments too."""
    report = disturb(Size(kills=3, seed=7), save_tiny_base(tmp_path, WORDS))
    assert report.kills == 3
    assert report.different_results == 0
    assert report.lost_candidates == 0
    assert report.repeated_answers == 0


# --- a run whose skill the connected agent writes ---


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("trained")
    return tiny_checkpoint(folder / "model", tiny_base(folder / "base"))


@pytest.fixture
def workers() -> Iterator[Workers]:
    workers = Workers()
    yield workers
    workers.end()


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with model_server(obedient) as served:
        yield served


def obedient(request: Request) -> Reply:
    """Each answer depends on the skill alone, and differs from one conversation to the next."""
    skill = request["messages"][0]["content"]
    number = request["messages"][-1]["content"].split()[-1]
    return says(f"{GOOD if HABITS[0] in skill else BAD} {'please ' * skill.count('.')}{number}")


def written_for(prompt: str) -> str:
    """What the agent writes: the present body and the first habit that it lacks."""
    present = prompt.partition(START)[2].partition(END)[0].strip()
    missing = [habit for habit in HABITS if habit not in present]
    again = " Really." if "You were asked the very same" in prompt else ""
    return f"{present}\n- {(missing or ['Stay calm.'])[0]}{again}"


class Session:
    """An agent at an MCP server of its own, over the library of one run."""

    def __init__(self, place: Path, workers: Workers) -> None:
        self.settings = Settings(place / "home", place / "project", place / "claude")
        self.settings.project_dir.mkdir(parents=True, exist_ok=True)
        numbers = itertools.count()
        self.backend = LocalBackend(
            self.settings,
            clock=lambda: datetime.now(UTC),
            new_id=lambda: f"{next(numbers):08d}",
            start_worker=workers.start,
        )
        self.store = JobStore(Database(self.settings.library_path), lambda: datetime.now(UTC))
        self.run_id = "run-00000001"
        self._server = build_server(
            lambda: self.backend, self.settings.project_dir, poll_seconds=0.05
        )

    def begin(self, checkpoint: Path, server: ModelServer) -> None:
        self.backend.import_traces(talks(4), annotations=notes(4))
        model = self.backend.import_reward_model(checkpoint)
        order = RunOrder(
            reward_model_id=model.id,
            task_model="openai/task",
            task_api_base=server.base_url,
            reflection_model="agent",
            max_metric_calls=64,
            proposals_at_once=2,
        )
        assert self.backend.start_run(order).run.id == self.run_id

    async def call(self, tool: str, **arguments: object) -> CallToolResult:
        async with Client(self._server) as client:
            return await client.call_tool(tool, {"run_id": self.run_id, **arguments})

    async def facts(self, tool: str, **arguments: object) -> dict[str, Any]:
        answer = await self.call(tool, **arguments)
        assert not answer.is_error, answer.content
        return answer.structured_content or {}

    async def refused(self, tool: str, **arguments: object) -> str:
        answer = await self.call(tool, **arguments)
        assert answer.is_error
        [block] = answer.content
        assert isinstance(block, TextContent)
        return block.text

    async def news(self) -> tuple[int, ...]:
        """The numbers that wait, once some do; none once the run is over."""
        for _ in range(20):
            state = await self.facts("get_run", wait_seconds=10, until="end")
            waiting = tuple(state["run"].get("reflections_waiting", ()))
            if waiting or state["status"] not in ("queued", "running"):
                return waiting
        raise AssertionError(f"nothing happens: {state}")

    async def waits_for(self, *numbers: int) -> bool:
        """Whether the run comes to wait for just these. Each is seen as soon as it is asked, so
        the first of several may be seen alone."""
        while (waiting := await self.news()) != numbers:
            if not waiting or not set(waiting) < set(numbers):
                return False
        return True

    async def answer(self, number: int) -> None:
        asked = await self.facts("get_reflection", number=number)
        if asked["kind"] == "identity":
            said = {"name": "parcel-help", "description": "How to answer about parcels."}
        else:
            said = {"body": written_for(asked["prompt"])}
        await self.facts("submit_reflection", number=number, **said)

    async def to_the_end(self) -> RunResult:
        while waiting := await self.news():
            for number in waiting:
                await self.answer(number)
        run = self.backend.get_run(self.run_id)
        assert run.status is JobStatus.SUCCEEDED, run.error
        path = JobFolder(self.settings.runs_dir / self.run_id).result_path
        return RunResult.model_validate_json(path.read_text(encoding="utf-8"))


async def test_a_run_that_is_killed_parked_and_cancelled_while_it_waits_ends_as_if_it_had_not(
    tmp_path: Path, checkpoint: Path, server: ModelServer, workers: Workers
) -> None:
    calm = Session(tmp_path / "calm", workers)
    calm.begin(checkpoint, server)
    undisturbed = await calm.to_the_end()
    asked, server.requests = server.requests, []
    workers.wait()

    session = Session(tmp_path / "disturbed", workers)
    session.begin(checkpoint, server)
    # The name: refused, and asked for still.
    assert await session.waits_for(1)
    said = await session.refused("submit_reflection", number=1, name="No Good", description="x")
    assert "only a-z" in said
    assert "It still waits" in said
    await session.answer(1)
    # Two bodies at once. The worker is killed between their answers; another session goes on.
    assert await session.waits_for(2, 3)
    said = await session.refused("submit_reflection", number=3, body="See @~/.ssh/id_rsa")
    assert "Line 1" in said
    await session.answer(3)
    workers.kill()
    session = Session(tmp_path / "disturbed", workers)
    assert workers.wait() == 0
    assert session.store.get(session.run_id).parked
    assert await session.waits_for(2)
    # Its last answer starts a worker, which waits no time for the next ones and parks the run.
    workers.patience = 0.0
    await session.answer(2)
    assert await session.waits_for(4, 5)
    assert workers.wait() == 0
    job = session.store.get(session.run_id)
    assert (job.status, job.parked, job.deaths) == (JobStatus.RUNNING, True, 0)
    started = len(workers.started)
    assert session.backend.get_run(session.run_id).reflections_waiting == (4, 5)
    assert len(workers.started) == started
    # Cancelled while a worker waits, and carried on.
    workers.patience = 600.0
    for number in (4, 5):
        await session.answer(number)
    assert await session.waits_for(6, 7)
    await session.facts("cancel_run")
    assert workers.wait() == 0
    assert "carried on (resume_run" in await session.refused("get_reflection", number=6)
    await session.facts("resume_run")
    assert await session.waits_for(6, 7)

    assert await session.to_the_end() == undisturbed
    assert len(server.requests) == len(asked)
    run, same = session.backend.get_run(session.run_id), calm.backend.get_run(calm.run_id)
    assert run.progress.reflection_usage == same.progress.reflection_usage
    assert run.progress.reflection_usage.calls <= run.plan.reflection_calls_at_most
    assert undisturbed.best_score > undisturbed.seed_score
    told = [event.message for event in session.backend.events(session.run_id)]
    assert told.count("The skill is named parcel-help.") == 1
