"""Whatever a tool call, a library or a child process prints, the client reads only messages."""

import json
import os
import sys
from pathlib import Path

from support.server_process import ROOT, ServerProcess
from support.staging import Stage

# A server whose tool prints in every way there is, and in whose threads others print.
NOISY = """
import logging, os, subprocess, sys, threading, warnings
from stash_mcp.backends.local import LocalBackend, open_local_backend
from stash_mcp.server.app import build_server
from stash_mcp.server.stdio import serve_stdio
from stash_mcp.settings import load_settings

list_traces = LocalBackend.list_traces

def noisy(backend, **arguments):
    print("said by print", flush=True)
    sys.__stdout__.write("said by the stream\\n")
    sys.stdout.buffer.write(b"said by the buffer\\n")
    sys.stdout.flush()
    os.write(1, b"said to the descriptor\\n")
    subprocess.run([sys.executable, "-S", "-c", "print('said by a child')"], check=True)
    os.system("echo said by a shell")
    logging.basicConfig(stream=sys.stdout, level=logging.DEBUG, force=True)
    logging.getLogger("LiteLLM").debug("said by a logger")
    warnings.simplefilter("always")
    warnings.warn("said by a warning")
    thread = threading.Thread(target=print, args=("said by a thread",), kwargs={"flush": True})
    thread.start()
    thread.join()
    return list_traces(backend, **arguments)

LocalBackend.list_traces = noisy
settings = load_settings()
serve_stdio(build_server(lambda: open_local_backend(settings), settings.project_dir))
"""
# A library that prints when it is imported.
LOUD = """
import os, sys

class Loud:
    def find_spec(self, name, path=None, target=None):
        if name == "mcp.server":
            print("said while loading")
            os.write(1, b"said while loading\\n")

sys.meta_path.insert(0, Loud())
"""
SAID = (
    "by print",
    "by the stream",
    "by the buffer",
    "to the descriptor",
    "by a child",
    "by a shell",
    "by a logger",
    "by a warning",
    "by a thread",
)


def test_what_is_printed_during_a_call_goes_to_standard_error(stage: Stage) -> None:
    environment = {"STASH_MCP_HOME": str(stage.settings.home)}
    server = ServerProcess(environment, (sys.executable, "-c", NOISY))
    with server.process:
        server.initialize()
        for number in (2, 3):
            assert server.call(number, "list_traces")["structuredContent"]["total"] == 0
        server.close_input()
        out, err = server.rest()
    assert [json.loads(line)["jsonrpc"] for line in server.lines] == ["2.0"] * 3
    assert out == b""
    for how in SAID:
        assert f"said {how}".encode() in err, how


def test_a_server_whose_libraries_are_noisy_from_their_loading_on_writes_messages_alone(
    stage: Stage, tmp_path: Path
) -> None:
    (tmp_path / "sitecustomize.py").write_text(LOUD, encoding="utf-8")
    noisy = {
        "PYTHONPATH": os.pathsep.join([str(tmp_path), str(ROOT)]),
        "PYTHONWARNINGS": "always",
        "PYTHONASYNCIODEBUG": "1",
        "LITELLM_LOG": "DEBUG",
        "TRANSFORMERS_VERBOSITY": "debug",
        "STASH_MCP_HOME": str(stage.settings.home),
        "CLAUDE_PROJECT_DIR": os.fspath(stage.settings.project_dir),
    }
    server = ServerProcess(noisy)
    with server.process:
        server.initialize()
        server.send("nonsense/method", {}, 2)
        assert "error" in server.receive()
        assert server.process.stdin is not None
        server.process.stdin.write(b"this is no message\n\xff\xfe\n")
        server.process.stdin.flush()
        server.send("ping", {}, 3)
        while server.receive().get("id") != 3:
            pass
        server.close_input()
        out, err = server.rest()
    assert out == b""
    assert b"said while loading" in err
    assert {json.loads(line)["jsonrpc"] for line in server.lines} == {"2.0"}
