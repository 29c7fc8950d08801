"""The main job through its doors: a client over stdio or the command, a real worker, real models.

The reward model is small and really trained; the task and reflection models are scripted behind a
real HTTP server, and called as any other.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Literal

import anyio
import pytest
from mcp import Client, StdioServerParameters
from support.model_server import ModelServer, Reply, Request, calls_tool, model_server, says
from support.tapped import assert_messages_alone, tapped
from support.tiny_models import save_tiny_base

from stash_mcp.optimization.reflection import END, START
from stash_mcp.skills.document import parse

PATIENCE_SECONDS = 90
GOOD = "sorry that it is late please give me the order number"
BAD = "no idea wait and see"
# The libraries at their most talkative; their worker inherits it from the server.
NOISE = {
    "LITELLM_LOG": "DEBUG",
    "TRANSFORMERS_VERBOSITY": "debug",
    "HF_HUB_VERBOSITY": "debug",
    "HF_HUB_DISABLE_PROGRESS_BARS": "0",
    "PYTHONWARNINGS": "always",
}


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="session")
def tiny_base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_tiny_base(tmp_path_factory.mktemp("base"), f"{GOOD} {BAD} user assistant parcel")


def script(request: Request) -> Reply:
    """A task model that is polite once its skill says so, and a reflection model that knows."""
    last = request["messages"][-1]["content"]
    if "tools" in request:
        identity = {"name": "parcel-help", "description": "How to answer about late parcels."}
        return calls_tool("name_skill", json.dumps(identity))
    if START in last:
        return says(f"{START}\nAsk for the order number. ({last.count('Ask for')})\n{END}")
    polite = "Ask for the order number" in request["messages"][0]["content"]
    return says(GOOD if polite else BAD)


@pytest.fixture
def models() -> Iterator[ModelServer]:
    with model_server(script) as server:
        yield server


def write_talks(folder: Path, prefix: str = "talk") -> tuple[Path, Path]:
    """Twelve conversations, half of them good, and what a reviewer said of them."""
    traces, annotations = [], []
    for number in range(12):
        good = number % 2 == 0
        name = f"{prefix}-{number:02d}"
        steps = [
            {"role": "system", "content": "You answer customers."},
            {"role": "user", "content": f"where is my parcel {number}"},
            {"role": "assistant", "content": GOOD if good else BAD},
        ]
        traces.append({"id": name, "steps": steps})
        annotations.append(
            {
                "trace_id": name,
                "step_index": 2,
                "rating": 1 if good else -1,
                "comment": "Ask for the order number first.",
                "created_at": "2026-01-01T00:00:00+00:00",
            }
        )
    paths = (folder / f"{prefix}-traces.jsonl", folder / f"{prefix}-annotations.jsonl")
    for path, rows in zip(paths, (traces, annotations), strict=True):
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return paths


def environment_of(folder: Path, project: Path) -> dict[str, str]:
    """project: whose folder of skills is made."""
    (project / ".claude" / "skills").mkdir(parents=True)
    return {
        "STASH_MCP_HOME": str(folder / "stash-home"),
        "CLAUDE_CONFIG_DIR": str(folder / "claude-config"),
        "CLAUDE_PROJECT_DIR": str(project),
        "PYTHONPATH": str(Path(__file__).parents[1]),
        "HF_HUB_OFFLINE": "1",
        # A client hands on little of its own environment.
        "OMP_NUM_THREADS": "1",
    }


async def call(client: Client, tool: str, **arguments: Any) -> dict[str, Any]:
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, result.content
    assert result.structured_content is not None
    return result.structured_content


async def ended(client: Client, job_id: str) -> dict[str, Any]:
    for _ in range(PATIENCE_SECONDS // 30):
        state = await call(client, "get_run", run_id=job_id, wait_seconds=30, until="end")
        if state["status"] in ("succeeded", "failed"):
            return state
    raise AssertionError(f"{job_id} is not over after {PATIENCE_SECONDS} s: {state}")


Mode = Literal["auto", "legacy"]
MODES: tuple[Mode, ...] = ("auto", "legacy")


class Session:
    """A client over stdio with a project of its own, at a library that others use too."""

    def __init__(self, mode: Mode, folder: Path) -> None:
        self.mode = mode
        self.project = folder / mode
        self.environment = environment_of(folder, self.project)
        self.written = folder / f"written-{mode}"
        self.run_id = ""

    def open(self) -> Client:
        program, *arguments = tapped([sys.executable, "-m", "stash_mcp", "serve"], self.written)
        parameters = StdioServerParameters(
            command=program, args=arguments, env=self.environment | NOISE
        )
        return Client(parameters, mode=self.mode)

    async def bring_in(self, client: Client, files: tuple[Path, Path]) -> None:
        imported = await call(
            client, "import_traces", path=str(files[0]), annotations_path=str(files[1])
        )
        assert (imported["imported"], imported["annotations_added"]) == (12, 12)
        comment = await call(
            client, "annotate_trace", trace_id=f"{self.mode}-01", step=2, comment="Be kind."
        )
        assert comment

    async def to_the_skill(self, client: Client, base: Path, models: ModelServer) -> None:
        trained = await call(
            client,
            "train_reward_model",
            name=self.mode,
            base_model=str(base),
            learning_rate=0.01,
            epochs=20,
        )
        model = await ended(client, trained["reward_model_id"])
        assert model["status"] == "succeeded", model
        started = await call(
            client,
            "start_gepa_run",
            reward_model_id=trained["reward_model_id"],
            task_model="openai/task",
            task_api_base=models.base_url,
            reflection_model="openai/reflection",
            reflection_api_base=models.base_url,
        )
        self.run_id = started["run_id"]
        run = await ended(client, self.run_id)
        assert run["status"] == "succeeded", run
        assert run["run"]["best_score"] > run["run"]["seed_score"]
        candidates = await call(client, "list_candidates", run_id=self.run_id)
        assert len(candidates["candidates"]) >= 2
        installed = await call(client, "install_skill", run_id=self.run_id)
        assert installed["written"][0]["path"] == str(self.skill)

    @property
    def skill(self) -> Path:
        return self.project / ".claude" / "skills" / "parcel-help" / "SKILL.md"

    def assert_all_is_there(self) -> None:
        assert_messages_alone(self.written)
        assert "Ask for the order number." in parse(self.skill.read_text(encoding="utf-8")).body
        folder = Path(self.environment["STASH_MCP_HOME"]) / "runs" / self.run_id
        result = json.loads((folder / "result.json").read_text(encoding="utf-8"))
        assert result["best_skill"] == self.skill.read_text(encoding="utf-8")
        assert result["candidates"][0] == {
            "skill": result["seed_skill"],
            "score": result["seed_score"],
        }


@pytest.mark.anyio
@pytest.mark.timeout(240)
async def test_clients_over_stdio_get_from_comments_to_an_installed_skill(
    tiny_base: Path, models: ModelServer, tmp_path: Path
) -> None:
    """One of each way to open a session, at one library: a worker does what both of them order."""
    sessions = [Session(mode, tmp_path) for mode in MODES]
    async with sessions[0].open() as first, sessions[1].open() as second:
        clients = (first, second)
        for session, client in zip(sessions, clients, strict=True):
            await session.bring_in(client, write_talks(tmp_path, session.mode))
        async with anyio.create_task_group() as group:
            for session, client in zip(sessions, clients, strict=True):
                group.start_soon(session.to_the_skill, client, tiny_base, models)
        for client in clients:
            listed = await call(client, "list_traces")
            models_listed = await call(client, "list_reward_models")
            runs = await call(client, "list_runs")
            assert (listed["total"], models_listed["total"], runs["total"]) == (24, 2, 2)
    for session in sessions:
        session.assert_all_is_there()


def command(environment: dict[str, str], *arguments: str) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-m", "stash_mcp", *arguments, "--json"],
        env={**os.environ, **environment},
        capture_output=True,
        timeout=PATIENCE_SECONDS,
    )
    printed: dict[str, Any] = json.loads(done.stdout)
    return {"exit": done.returncode, "value": printed}


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory, tiny_base: Path) -> dict[str, str]:
    """The environment of a library with a reward model, both from the command."""
    folder = tmp_path_factory.mktemp("command")
    environment = environment_of(folder, folder / "project")
    traces, annotations = write_talks(folder)
    imported = command(environment, "import", str(traces), "--annotations", str(annotations))
    assert imported["value"]["imported"] == 12
    base = ("--base-model", str(tiny_base), "--learning-rate", "0.01", "--epochs", "20")
    trained = command(environment, "train", *base)
    assert trained["value"]["status"] == "succeeded", trained
    return environment


@pytest.fixture(scope="module")
def ended_runs(trained: dict[str, str]) -> list[dict[str, Any]]:
    """A run, and one whose task model is not there: ordered at once, so that a worker does both."""
    with model_server(script) as models, ThreadPoolExecutor() as pool:
        place = ("--task-model", "openai/task", "--task-api-base", models.base_url)
        orders = [(*place, "--skill-name", "mine"), ("--task-model", "openai/gpt-4o-mini")]
        return list(pool.map(lambda order: command(trained, "run", *order), orders))


@pytest.mark.timeout(240)
def test_the_command_gets_from_comments_to_an_installed_skill_without_a_reflection_model(
    trained: dict[str, str], ended_runs: list[dict[str, Any]]
) -> None:
    run, _ = ended_runs
    assert run["value"]["status"] == "succeeded", run
    installed = command(trained, "install", run["value"]["id"])
    path = Path(installed["value"]["installed"][0]["installation"]["path"])
    assert "Ask for the order number" in path.read_text(encoding="utf-8")
    again = command(trained, "install", run["value"]["id"])
    assert again["value"]["installed"][0]["action"] == "unchanged"
    path.write_text("mine", encoding="utf-8")
    refused = command(trained, "install", run["value"]["id"])
    assert refused["exit"] == 1
    assert refused["value"]["error"]["code"] == "install_conflict"
    assert path.read_text(encoding="utf-8") == "mine"


def test_a_run_whose_task_model_is_not_there_fails_with_the_reason_first(
    ended_runs: list[dict[str, Any]],
) -> None:
    _, run = ended_runs
    assert run["exit"] == 1
    assert run["value"]["status"] == "failed"
    assert run["value"]["reason"].startswith("The model 'openai/gpt-4o-mini' refused the key")
    assert "OPENAI_API_KEY is not set" in run["value"]["reason"]
    assert run["value"]["error"].rstrip().endswith(run["value"]["reason"])
