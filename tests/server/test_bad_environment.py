"""A variable that cannot be used is told by the server that has it, and not by its silence."""

import subprocess
import sys
from pathlib import Path

import pytest
from support.server_process import ServerProcess


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("STASH_MCP_INSTALL", "sometimes", "auto, ask or off"),
        ("STASH_MCP_HOME", "${HOME}/stash", "was not filled in"),
    ],
)
def test_the_server_starts_and_every_call_says_what_is_wrong(
    name: str, value: str, said: str, tmp_path: Path
) -> None:
    home = {"STASH_MCP_HOME": str(tmp_path / "home"), "HOME": str(tmp_path)}
    server = ServerProcess({**home, name: value})
    with server.process:
        assert server.initialize()["result"]["serverInfo"]["name"] == "stash-skills"
        refused = server.call(2, "list_traces")
        looked = server.call(3, "doctor")
        install = server.call(4, "doctor", install="local")
        server.close_input()
        assert server.process.wait(20) == 0
        server.rest()
    assert refused["isError"]
    assert name in refused["content"][0]["text"]
    assert said in refused["content"][0]["text"]
    [problem] = [row for row in looked["structuredContent"]["checks"] if row["state"] == "problem"]
    assert problem["name"] == "environment"
    assert name in problem["said"]
    assert install["isError"]
    assert not (tmp_path / "home").exists()


def test_the_doctor_of_the_command_tells_all_of_them_and_the_others_refuse(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("STASH_MCP_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("STASH_MCP_INSTALL", "sometimes")
    monkeypatch.setenv("STASH_MCP_BACKEND", "moon")

    def command(*arguments: str) -> subprocess.CompletedProcess[str]:
        line = [sys.executable, "-m", "stash_mcp", *arguments]
        return subprocess.run(line, capture_output=True, text=True, check=False)

    looked = command("doctor")
    assert looked.returncode == 1
    assert looked.stdout.count("problem      environment: STASH_MCP_") == 2
    refused = command("runs")
    assert refused.returncode == 1
    assert "STASH_MCP_INSTALL is 'sometimes'." in refused.stderr
