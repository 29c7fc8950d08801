"""The main job through its doors: a client over stdio or the command, a real worker, real models.

The reward model is small and really trained; the task and reflection models are scripted behind a
real HTTP server, and called as any other.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

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


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    """Twelve conversations, half of them good, and what a reviewer said of them."""
    traces, annotations = [], []
    for number in range(12):
        good = number % 2 == 0
        name = f"talk-{number:02d}"
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
    paths = (tmp_path / "traces.jsonl", tmp_path / "annotations.jsonl")
    for path, rows in zip(paths, (traces, annotations), strict=True):
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return paths


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    (tmp_path / "project" / ".claude" / "skills").mkdir(parents=True)
    names = ("STASH_MCP_HOME", "CLAUDE_CONFIG_DIR", "CLAUDE_PROJECT_DIR")
    return {
        **{name: os.environ[name] for name in names},
        "PYTHONPATH": str(Path(__file__).parents[1]),
        "HF_HUB_OFFLINE": "1",
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


@pytest.mark.anyio
@pytest.mark.timeout(240)
@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_a_client_over_stdio_gets_from_comments_to_an_installed_skill(
    mode: Literal["auto", "legacy"],
    tiny_base: Path,
    models: ModelServer,
    files: tuple[Path, Path],
    environment: dict[str, str],
    tmp_path: Path,
) -> None:
    written = tmp_path / "written"
    program, *arguments = tapped([sys.executable, "-m", "stash_mcp", "serve"], written)
    parameters = StdioServerParameters(command=program, args=arguments, env=environment | NOISE)
    async with Client(parameters, mode=mode) as client:
        imported = await call(
            client, "import_traces", path=str(files[0]), annotations_path=str(files[1])
        )
        assert (imported["imported"], imported["annotations_added"]) == (12, 12)
        comment = await call(
            client, "annotate_trace", trace_id="talk-01", step=2, comment="Be kind."
        )
        assert comment
        listed = await call(client, "list_traces")
        assert listed["total"] == 12
        trained = await call(
            client, "train_reward_model", base_model=str(tiny_base), learning_rate=0.01, epochs=20
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
        run = await ended(client, started["run_id"])
        assert run["status"] == "succeeded", run
        candidates = await call(client, "list_candidates", run_id=started["run_id"])
        installed = await call(client, "install_skill", run_id=started["run_id"])
        models_listed = await call(client, "list_reward_models")
        runs = await call(client, "list_runs")
    assert_messages_alone(written)
    assert run["run"]["best_score"] > run["run"]["seed_score"]
    assert len(candidates["candidates"]) >= 2
    assert models_listed["total"] == runs["total"] == 1
    path = tmp_path / "project" / ".claude" / "skills" / "parcel-help" / "SKILL.md"
    assert installed["written"][0]["path"] == str(path)
    assert "Ask for the order number." in parse(path.read_text(encoding="utf-8")).body
    folder = Path(environment["STASH_MCP_HOME"]) / "runs" / started["run_id"]
    result = json.loads((folder / "result.json").read_text(encoding="utf-8"))
    assert result["best_skill"] == path.read_text(encoding="utf-8")
    assert result["candidates"][0] == {
        "skill": result["seed_skill"],
        "score": result["seed_score"],
    }


def command(environment: dict[str, str], *arguments: str) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-m", "stash_mcp", *arguments, "--json"],
        env={**os.environ, **environment},
        capture_output=True,
        timeout=PATIENCE_SECONDS,
    )
    printed: dict[str, Any] = json.loads(done.stdout)
    return {"exit": done.returncode, "value": printed}


@pytest.mark.timeout(240)
def test_the_command_gets_from_comments_to_an_installed_skill_without_a_reflection_model(
    tiny_base: Path,
    models: ModelServer,
    files: tuple[Path, Path],
    environment: dict[str, str],
) -> None:
    imported = command(environment, "import", str(files[0]), "--annotations", str(files[1]))
    assert imported["value"]["imported"] == 12
    base = ("--base-model", str(tiny_base), "--learning-rate", "0.01", "--epochs", "20")
    trained = command(environment, "train", *base)
    assert trained["value"]["status"] == "succeeded", trained
    place = ("--task-model", "openai/task", "--task-api-base", models.base_url)
    run = command(environment, "run", *place, "--skill-name", "mine")
    assert run["value"]["status"] == "succeeded", run
    installed = command(environment, "install", run["value"]["id"])
    path = Path(installed["value"]["installed"][0]["installation"]["path"])
    assert "Ask for the order number" in path.read_text(encoding="utf-8")
    again = command(environment, "install", run["value"]["id"])
    assert again["value"]["installed"][0]["action"] == "unchanged"
    path.write_text("mine", encoding="utf-8")
    refused = command(environment, "install", run["value"]["id"])
    assert refused["exit"] == 1
    assert refused["value"]["error"]["code"] == "install_conflict"
    assert path.read_text(encoding="utf-8") == "mine"


@pytest.mark.timeout(240)
def test_a_run_whose_task_model_is_not_there_fails_with_the_reason_first(
    tiny_base: Path, files: tuple[Path, Path], environment: dict[str, str]
) -> None:
    command(environment, "import", str(files[0]), "--annotations", str(files[1]))
    command(environment, "train", "--base-model", str(tiny_base), "--learning-rate", "0.01")
    run = command(environment, "run", "--task-model", "openai/gpt-4o-mini")
    assert run["exit"] == 1
    assert run["value"]["status"] == "failed"
    assert run["value"]["reason"].startswith("The model 'openai/gpt-4o-mini' refused the key")
    assert "OPENAI_API_KEY is not set" in run["value"]["reason"]
    assert run["value"]["error"].rstrip().endswith(run["value"]["reason"])
