"""The server as a client starts it: a process of its own on standard input and output."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import pytest
from mcp import Client, StdioServerParameters
from support.server_process import COMMAND, ROOT, ServerProcess
from support.staging import Stage, conversation, jsonl

from stash_mcp.storage.files import try_lock

HEAVY = ("torch", "transformers", "litellm", "gepa", "safetensors")
# Well under the 50 seconds that the call in progress would take.
PATIENCE = 20


@pytest.fixture
def environment(stage: Stage) -> dict[str, str]:
    return {
        "STASH_MCP_HOME": str(stage.settings.home),
        "CLAUDE_CONFIG_DIR": str(stage.settings.claude_config_dir),
        "CLAUDE_PROJECT_DIR": str(stage.settings.project_dir),
        "PYTHONPATH": str(ROOT),
    }


@pytest.fixture
def running_job(stage: Stage) -> Iterator[str]:
    """The id of a training that never ends: its worker's lock is ours."""
    stage.conversations()
    model = stage.train()
    stage.begin()
    with try_lock(stage.settings.worker_lock_path) as held:
        assert held
        yield model.id


@pytest.mark.anyio
@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_a_client_over_stdio_imports_reads_and_is_refused(
    mode: Literal["auto", "legacy"], environment: dict[str, str], stage: Stage
) -> None:
    (stage.settings.project_dir / "talks.jsonl").write_bytes(jsonl([conversation("one")]))
    parameters = StdioServerParameters(command=COMMAND[0], args=list(COMMAND[1:]), env=environment)
    async with Client(parameters, mode=mode) as client:
        imported = await client.call_tool("import_traces", {"path": "talks.jsonl"})
        shown = await client.call_tool("get_trace", {"trace_id": "one"})
        refused = await client.call_tool("get_run", {"run_id": "none"})
    assert (imported.structured_content or {})["trace_ids"] == ["one"]
    assert [step["role"] for step in (shown.structured_content or {})["steps"]] == [
        "user",
        "assistant",
    ]
    assert refused.is_error
    assert stage.backend.get_trace("one").trace.title == "Conversation one"


def wait_for(server: ServerProcess, job_id: str) -> None:
    """Have a get_run of 50 seconds under way."""
    arguments = {"run_id": job_id, "wait_seconds": 50}
    params = {"name": "get_run", "arguments": arguments, "_meta": {"progressToken": "p"}}
    server.send("tools/call", params, 2)
    assert server.receive()["method"] == "notifications/progress"


@pytest.fixture
def server_process(environment: dict[str, str]) -> Iterator[ServerProcess]:
    server = ServerProcess(environment)
    with server.process:
        yield server
        server.process.kill()


def test_it_introduces_itself_with_the_loop_in_its_instructions(
    server_process: ServerProcess,
) -> None:
    result = server_process.initialize()["result"]
    assert result["serverInfo"]["name"] == "stash-skills"
    assert "import_traces" in result["instructions"]


def test_it_makes_no_library_before_a_tool_is_called(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    home = tmp_path / "untouched"
    server = ServerProcess({**environment, "STASH_MCP_HOME": str(home)})
    with server.process:
        server.initialize()
        server.send("tools/list", {}, 2)
        assert server.receive()["result"]["tools"]
        assert not home.exists()
        server.send("tools/call", {"name": "list_runs", "arguments": {}}, 3)
        assert server.receive()["result"]["structuredContent"]["total"] == 0
        assert home.exists()
        server.process.kill()


def test_it_leaves_when_standard_input_closes_though_a_call_is_waiting(
    running_job: str, server_process: ServerProcess
) -> None:
    server_process.initialize()
    wait_for(server_process, running_job)
    server_process.close_input()
    assert server_process.process.wait(PATIENCE) == 0


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no signals for processes")
@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP"])
def test_it_leaves_on_a_signal_though_a_call_is_waiting(
    name: str, running_job: str, server_process: ServerProcess
) -> None:
    server_process.initialize()
    wait_for(server_process, running_job)
    server_process.process.send_signal(getattr(signal, name))
    assert server_process.process.wait(PATIENCE) == 0
    assert server_process.process.stderr is not None
    assert b"Traceback" not in server_process.process.stderr.read()


@pytest.mark.parametrize("module", ["stash_mcp.server.stdio", "stash_mcp.cli.app"])
def test_neither_the_server_nor_the_command_loads_a_heavy_library(
    module: str, environment: dict[str, str]
) -> None:
    program = f"import sys, json, {module}; print(json.dumps(sorted(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, **environment},
        capture_output=True,
        check=True,
    )
    loaded = {name.partition(".")[0] for name in json.loads(done.stdout)}
    assert "stash_mcp" in loaded
    assert not loaded & set(HEAVY)


def test_the_command_does_without_the_servers_libraries(environment: dict[str, str]) -> None:
    program = "import sys, stash_mcp.cli.app; print('mcp' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, **environment},
        capture_output=True,
        check=True,
    )
    assert done.stdout.split() == [b"False"]
