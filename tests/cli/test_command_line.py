"""The command as a whole: help, exit codes, errors, and as a process of its own."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from support.staging import Stage, conversation, jsonl

from stash_mcp import __version__
from stash_mcp.cli.failures import REPORT_NAME
from stash_mcp.cli.main import main
from stash_mcp.cli.session import Session
from stash_mcp.settings import Settings

ROOT = Path(__file__).parents[2]
COMMANDS = [
    *("import", "annotate", "flag", "traces", "trace", "export", "train", "models"),
    *("import-model", "export-model", "run", "status", "runs", "candidates", "install"),
    *("cancel", "resume", "logs", "cache", "prune", "disk", "serve", "version"),
]


def test_help_names_every_command(command) -> None:
    said = command("--help")
    assert said.code == 0
    for name in COMMANDS:
        assert f" {name} " in said.out


@pytest.mark.parametrize("name", COMMANDS)
def test_each_command_explains_itself(command, name: str) -> None:
    said = command(name, "--help")
    assert said.code == 0
    assert f"Usage: stash-skills {name}" in said.out
    assert name == "serve" or "--json" in said.out


@pytest.mark.parametrize(
    "arguments",
    [
        ("nonsense",),
        ("traces", "--limit", "0"),
        ("annotate", "a", "--rating", "5"),
        ("run",),
        ("candidates",),
        ("install", "r", "--scope", "everywhere"),
        ("run", "--task-model", "m", "--max-cost-usd", "0"),
        ("run", "--task-model", "m", "--max-seconds", "nan"),
        ("run", "--task-model", "m", "--max-seconds", "inf"),
        ("run", "--task-model", "m", "--no-improvement-for", "0"),
        ("prune", "--older-than-days", "-1"),
        ("cancel",),
        ("resume",),
        ("logs",),
    ],
)
def test_wrong_use_is_exit_code_2_with_nothing_on_standard_output(command, arguments) -> None:
    said = command(*arguments)
    assert (said.code, said.out) == (2, "")
    assert "Usage" in said.err


def test_errors_are_json_on_request(command, stage: Stage) -> None:
    said = command("trace", "nobody", "--json")
    assert (said.code, said.err) == (1, "")
    error = json.loads(said.out)["error"]
    assert error["code"] == "not_found"
    assert error["message"] == f"{error['problem']} {error['fix']}"


def test_a_crash_is_a_sentence_and_its_traceback_a_file(
    stage: Stage, capsys: pytest.CaptureFixture[str]
) -> None:
    def crash(_settings: Settings):
        raise ZeroDivisionError("sk-abcdefghijk was the key")

    code = main(["runs"], Session(settings=stage.settings, open_backend=crash))
    said = capsys.readouterr().err
    kept = (stage.settings.home / REPORT_NAME).read_text("utf-8")
    assert code == 1
    assert "ZeroDivisionError" in said
    assert str(stage.settings.home / REPORT_NAME) in said
    assert "Traceback" not in said
    assert "Traceback" in kept
    assert "sk-abcdefghijk" not in said + kept


def test_an_interrupt_is_exit_code_130(stage: Stage) -> None:
    def interrupt(_settings: Settings):
        raise KeyboardInterrupt

    assert main(["runs"], Session(settings=stage.settings, open_backend=interrupt)) == 130


# --- as a process ---


def process(home: Path, *arguments: str, **options) -> subprocess.CompletedProcess[bytes]:
    environment = {**os.environ, "STASH_MCP_HOME": str(home), "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "stash_mcp", *arguments]
    return subprocess.run(command, env=environment, capture_output=True, check=False, **options)


def test_the_module_is_the_command(tmp_path: Path) -> None:
    done = process(tmp_path / "home", "version", "--json")
    facts = json.loads(done.stdout)
    assert (done.returncode, done.stderr) == (0, b"")
    assert (facts["version"], facts["home"]) == (__version__, str(tmp_path / "home"))


def test_what_one_process_imports_another_lists_without_control_characters(
    tmp_path: Path,
) -> None:
    file = tmp_path / "talks.jsonl"
    row = {**conversation("a"), "title": "Grüße, 世界 🚲"}
    file.write_bytes(jsonl([row]))
    imported = process(tmp_path / "home", "import", str(file))
    listed = process(tmp_path / "home", "traces")
    assert (imported.returncode, listed.returncode) == (0, 0)
    assert "Grüße, 世界 🚲" in listed.stdout.decode("utf-8")
    assert not any(byte < 32 and byte not in (10, 13) for byte in imported.stdout + listed.stdout)


def test_output_is_utf8_whatever_the_locale(tmp_path: Path) -> None:
    file = tmp_path / "talks.jsonl"
    file.write_bytes(jsonl([conversation("a", "Grüße 🚲", "ok")]))
    process(tmp_path / "home", "import", str(file))
    environment = {
        **os.environ,
        "STASH_MCP_HOME": str(tmp_path / "home"),
        "PYTHONPATH": str(ROOT),
        "PYTHONIOENCODING": "ascii",
    }
    command = [sys.executable, "-m", "stash_mcp", "trace", "a"]
    done = subprocess.run(command, env=environment, capture_output=True, check=True)
    assert "Grüße 🚲" in done.stdout.decode("utf-8")


@pytest.mark.skipif(sys.platform == "win32", reason="uses a shell's pipe")
def test_a_reader_that_goes_away_is_no_error_to_shout_about(tmp_path: Path) -> None:
    file = tmp_path / "talks.jsonl"
    file.write_bytes(jsonl([conversation(f"t-{number}", "x" * 5000, "y") for number in range(200)]))
    process(tmp_path / "home", "import", str(file))
    environment = {**os.environ, "STASH_MCP_HOME": str(tmp_path / "home"), "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        f"{sys.executable} -m stash_mcp export traces | head -c 10",
        shell=True,
        env=environment,
        capture_output=True,
        check=True,
    )
    assert len(done.stdout) == 10
    assert done.stderr == b""
