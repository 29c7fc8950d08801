import json

import pytest
from support.staging import Stage

from stash_mcp.cli import doctor as command_module
from stash_mcp.doctor import installing


def test_it_says_how_everything_stands(command, stage: Stage) -> None:
    said = command("doctor")
    assert said.code == 0
    for name in ("python", "disk", "library", "worker", "keys", "models", "stash"):
        assert f"  {name}: " in said.out
    rows = json.loads(command("doctor", "--json").out)["checks"]
    assert {row["state"] for row in rows} <= {"ok", "warning", "problem", "not checked"}


def test_a_problem_makes_it_fail_and_a_warning_does_not(
    command, stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    warned = command("doctor", "--json")
    assert any(row["state"] == "warning" for row in json.loads(warned.out)["checks"])
    assert warned.code == 0
    monkeypatch.setenv("STASH_API_KEY", "a-key-1234567890")
    monkeypatch.setenv("STASH_URL", "ftp://nowhere")
    said = command("doctor")
    assert said.code == 1
    assert "problem      stash:" in said.out
    assert "a-key-1234567890" not in said.out


def test_install_starts_it_once_with_what_the_part_asks_for(
    command, stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[list[str]] = []

    def start(settings: object, surroundings: object, requirements: list[str], **_: object) -> None:
        started.append(list(requirements))

    monkeypatch.setattr(command_module.installing, "start", start)
    assert command("doctor", "--install", "local").code == 0
    [requirements] = started
    assert any(row.startswith("torch") for row in requirements)
    refused = command("doctor", "--install", "everything")
    assert refused.code == 2
    assert installing.state(stage.settings.home, stage.now) is None
