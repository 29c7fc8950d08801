"""The news of the watcher go with an answer, and never in the place of one."""

import threading
from pathlib import Path

import anyio
import anyio.from_thread
import pytest
from mcp import Client
from support.staging import Stage

from stash_mcp.backends.both import open_backends
from stash_mcp.errors import LibraryBusyError
from stash_mcp.models import Notice
from stash_mcp.server.app import SkillServer, build_server
from stash_mcp.settings import Settings

pytestmark = pytest.mark.anyio

NEWS = [Notice(run_id="run-1", state="installed", note="The skill is installed.")]


def over(home: Path, tmp_path: Path) -> SkillServer:
    settings = Settings(home=home, project_dir=tmp_path, claude_config_dir=tmp_path / "claude")
    return build_server(lambda: open_backends(settings), tmp_path)


@pytest.mark.parametrize("library", [b"garbage" * 1000, b""])
async def test_the_doctor_answers_where_the_library_cannot_be_opened(
    library: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    if library:
        home.mkdir()
        (home / "library.db").write_bytes(library)
    else:
        home.write_text("a file where the folder should be")
    monkeypatch.setenv("STASH_MCP_HOME", str(home))
    async with Client(over(home, tmp_path)) as client:
        answer = await client.call_tool("doctor", {})
        refused = await client.call_tool("list_runs", {})
    assert not answer.is_error
    assert (answer.structured_content or {})["problems"]
    assert refused.is_error


async def test_what_was_written_is_answered_though_the_news_cannot_be_had(
    server: SkillServer, stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage.conversations()

    def busy() -> list[Notice]:
        raise LibraryBusyError("Another process writes.", "Wait.")

    monkeypatch.setattr(server, "_take_notices", busy)
    async with Client(server) as client:
        said = {"trace_id": "c-00", "rating": "up"}
        answer = await client.call_tool("annotate_trace", said)
    assert not answer.is_error
    assert len(stage.backend.get_trace("c-00").annotations) == 2


async def test_a_call_that_is_cancelled_leaves_the_news_it_took_to_the_next_one(
    server: SkillServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    taking, let_go = threading.Event(), threading.Event()
    news = [*NEWS]

    def take() -> list[Notice]:
        taking.set()
        assert let_go.wait(20)
        taken = [*news]
        news.clear()
        return taken

    monkeypatch.setattr(server, "_take_notices", take)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(server.call_tool, "list_runs", {})
        await anyio.to_thread.run_sync(taking.wait)
        tasks.cancel_scope.cancel()
        let_go.set()
    answer = await server.call_tool("list_runs", {})
    told = getattr(answer, "structured_content", None) or {}
    assert told["notices"] == [NEWS[0].note]
