"""The server is gone at the end of its input and on a signal, whatever is under way in it."""

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from support.server_process import ROOT, ServerProcess
from support.staging import Stage

from stash_mcp.models import JobStatus
from stash_mcp.storage.files import try_lock

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Windows has no process groups")

PATIENCE_SECONDS = 20
# A server that hangs for good in a tool's thread, and in the watcher's.
STUCK = """
import sys, threading
from stash_mcp.backends.local import LocalBackend, open_local_backend
from stash_mcp.server.app import build_server
from stash_mcp.server.opening import LazyBackend
from stash_mcp.server.stdio import serve_stdio
from stash_mcp.server.watching import watch_in_background
from stash_mcp.settings import load_settings

def hang(*_arguments, **_named):
    sys.stderr.write("stuck\\n")
    threading.Event().wait()

LocalBackend.list_traces = LocalBackend.reconcile = hang
settings = load_settings()
settings.runs_dir.mkdir(parents=True, exist_ok=True)
backend = LazyBackend(lambda: open_local_backend(settings))
watch_in_background(backend, settings.home, head_start=0)
serve_stdio(build_server(backend, settings.project_dir))
"""
# What a worker loads first: it waits there until it may go on, and then cannot.
WAITING_TORCH = """
import os, time
while not os.path.exists(os.environ["MAY_GO_ON"]):
    time.sleep(0.05)
raise ImportError("no torch here")
"""

Leave = Callable[[ServerProcess], None]


def close_input(server: ServerProcess) -> None:
    server.close_input()


def interrupt(server: ServerProcess) -> None:
    """As Ctrl-C does: the whole process group."""
    os.killpg(server.process.pid, signal.SIGINT)


def terminate(server: ServerProcess) -> None:
    server.process.terminate()


@pytest.fixture
def environment(stage: Stage, tmp_path: Path) -> dict[str, str]:
    (tmp_path / "temporary").mkdir()
    return {
        "STASH_MCP_HOME": str(stage.settings.home),
        "CLAUDE_CONFIG_DIR": str(stage.settings.claude_config_dir),
        "CLAUDE_PROJECT_DIR": str(stage.settings.project_dir),
        "TMPDIR": str(tmp_path / "temporary"),
    }


@contextmanager
def running(server: ServerProcess) -> Iterator[ServerProcess]:
    with server.process:
        try:
            server.initialize()
            yield server
        finally:
            server.process.kill()


def assert_nothing_is_left(server: ServerProcess, environment: dict[str, str]) -> None:
    assert server.process.wait(PATIENCE_SECONDS) == 0
    with pytest.raises(ProcessLookupError):
        os.killpg(server.process.pid, 0)
    assert list(Path(environment["TMPDIR"]).iterdir()) == []


def wait_until_stuck(server: ServerProcess) -> None:
    assert server.process.stderr is not None
    assert server.process.stderr.readline() == b"stuck\n"


@pytest.mark.parametrize("leave", [close_input, interrupt, terminate])
def test_a_tool_and_a_watcher_that_hang_in_their_threads_do_not_keep_it(
    leave: Leave, environment: dict[str, str]
) -> None:
    with running(ServerProcess(environment, (sys.executable, "-c", STUCK))) as server:
        server.start_call(2, "list_traces")
        wait_until_stuck(server)
        wait_until_stuck(server)
        leave(server)
        assert_nothing_is_left(server, environment)


def test_a_client_that_reads_nothing_any_more_does_not_keep_it(
    environment: dict[str, str], stage: Stage
) -> None:
    stage.conversations(40)
    with running(ServerProcess(environment)) as server:
        # Answers of far more than a pipe holds.
        for number in range(2, 80):
            server.start_call(number, "list_traces")
        close_input(server)
        assert_nothing_is_left(server, environment)


def test_the_worker_that_it_started_goes_on(
    environment: dict[str, str], stage: Stage, tmp_path: Path
) -> None:
    go = tmp_path / "go"
    modules = tmp_path / "modules"
    (modules / "torch").mkdir(parents=True)
    (modules / "torch" / "__init__.py").write_text(WAITING_TORCH, encoding="utf-8")
    stage.conversations()
    path = os.pathsep.join([str(modules), str(ROOT)])
    environment |= {"PYTHONPATH": path, "MAY_GO_ON": str(go)}
    with running(ServerProcess(environment)) as server:
        answer = server.call(2, "train_reward_model")
        model_id = answer["structuredContent"]["reward_model_id"]
        assert until(lambda: worker_is_alive(stage))
        interrupt(server)
        assert_nothing_is_left(server, environment)
    assert worker_is_alive(stage)
    go.touch()
    assert until(lambda: stage.backend.get_reward_model(model_id).status is JobStatus.FAILED)
    assert "no torch here" in (stage.backend.get_reward_model(model_id).reason or "")
    assert until(lambda: not worker_is_alive(stage))


def worker_is_alive(stage: Stage) -> bool:
    with try_lock(stage.settings.worker_lock_path) as free:
        return not free


def until(condition: Callable[[], bool]) -> bool:
    pause = threading.Event()
    return any(condition() or pause.wait(0.05) for _ in range(PATIENCE_SECONDS * 20))
