"""A client that does not read standard error neither stops the server nor keeps it."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.server_process import ROOT, ServerProcess

# A server whose tools fail in ways that it logs, each with a traceback of some thousand bytes.
FAILING = """
import sys
from pathlib import Path
from stash_mcp.server.app import build_server
from stash_mcp.server.logs import log_plainly
from stash_mcp.server.stdio import serve_stdio

def broken():
    raise ZeroDivisionError("x" * 5000)

log_plainly()
serve_stdio(build_server(broken, Path.cwd(), has_library=lambda: False))
"""
PATIENCE_SECONDS = 20
CALLS = 100


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ServerProcess]:
    script = tmp_path / "failing.py"
    script.write_text(FAILING, encoding="utf-8")
    server = ServerProcess({"PYTHONPATH": str(ROOT)}, (sys.executable, str(script)))
    with server.process:
        server.initialize()
        yield server
        server.process.kill()


def test_it_answers_though_standard_error_is_full_and_leaves_at_the_end_of_its_input(
    server: ServerProcess,
) -> None:
    for number in range(2, CALLS):
        answer = server.call(number, "list_runs")
        assert "this is a defect" in answer["content"][0]["text"]
    server.close_input()
    assert server.process.wait(PATIENCE_SECONDS) == 0
