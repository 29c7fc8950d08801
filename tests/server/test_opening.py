"""What is made once and late, and that nothing of it delays the first answer."""

import json
import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client
from mcp.server import MCPServer
from support.staging import Stage

from stash_mcp.server.app import SkillServer, build_server
from stash_mcp.server.opening import Once

LATE = (
    "stash_mcp.models",
    "stash_mcp.backends.base",
    "stash_mcp.backends.local",
    "stash_mcp.server.contents",
    "stash_mcp.server.run_tools",
    "stash_mcp.server.results",
    "stash_mcp.cli.failures",
    "filelock",
    "ruamel",
    "typer",
)


def test_many_threads_get_the_one_that_was_made() -> None:
    made: list[object] = []
    start = threading.Barrier(8)

    def make() -> object:
        made.append(object())
        return made[-1]

    once = Once(make)

    def take(_number: int) -> object:
        start.wait()
        return once()

    with ThreadPoolExecutor(8) as threads:
        assert set(threads.map(take, range(8))) == set(made)
    assert len(made) == 1
    assert once.made is made[0]


def test_a_making_that_failed_is_tried_again() -> None:
    attempts: list[int] = []

    def make() -> str:
        attempts.append(1)
        if len(attempts) == 1:
            raise OSError("not yet")
        return "made"

    once = Once(make)
    with pytest.raises(OSError, match="not yet"):
        once()
    assert once.made is None
    assert once() == "made"


@pytest.mark.anyio
async def test_clients_that_ask_at_once_share_one_building(stage: Stage) -> None:
    built: list[MCPServer[Any]] = []

    def contents() -> MCPServer[Any]:
        built.append(MCPServer("contents", log_level="WARNING"))
        return built[-1]

    server = SkillServer(contents, lambda: [], lambda: None)
    async with anyio.create_task_group() as tasks:
        for _ in range(10):
            tasks.start_soon(server.list_tools)
            tasks.start_soon(server.list_prompts)
    assert len(built) == 1


@pytest.mark.anyio
async def test_greeting_builds_nothing_and_the_first_list_prepares_the_first_call(
    stage: Stage,
) -> None:
    prepared = threading.Event()
    server = build_server(lambda: stage.backend, stage.settings.project_dir, prepare=prepared.set)
    async with Client(server, mode="legacy") as client:
        assert client.server_capabilities is not None
        assert client.server_capabilities.tools is not None
        assert server.contents.made is None
        assert not prepared.is_set()
        assert (await client.list_tools()).tools
        assert server.contents.made is not None
        assert await anyio.to_thread.run_sync(prepared.wait, 30)


def test_what_a_client_waits_for_loads_none_of_what_comes_later(tmp_path: Path) -> None:
    program = (
        "import sys, json\n"
        "import stash_mcp.cli.main, stash_mcp.server.stdio as stdio\n"
        "from stash_mcp.server.app import build_server\n"
        "from pathlib import Path\n"
        "build_server(lambda: None, Path.cwd())\n"
        "print(json.dumps(sorted(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "STASH_MCP_HOME": str(tmp_path)},
        capture_output=True,
        check=True,
    )
    loaded = json.loads(done.stdout)
    assert "stash_mcp.server.app" in loaded
    assert set(LATE).intersection(loaded) == set()
