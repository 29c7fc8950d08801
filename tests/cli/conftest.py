import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from support.staging import Stage

from stash_mcp.cli.main import main
from stash_mcp.cli.session import Session


@dataclass(frozen=True)
class Outcome:
    code: int
    out: str
    err: str


Command = Callable[..., Outcome]


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Stage:
    """Where an unexpected error would be kept is inside the stage as well."""
    stage = Stage(tmp_path)
    monkeypatch.setenv("STASH_MCP_HOME", str(stage.settings.home))
    monkeypatch.chdir(stage.settings.project_dir)
    return stage


@pytest.fixture
def session(stage: Stage) -> Session:
    return Session(
        settings=stage.settings,
        open_backend=lambda _settings: stage.backend,
        clock=stage.clock,
        sleep=lambda _seconds: None,
    )


@pytest.fixture
def command(session: Session, capsys: pytest.CaptureFixture[str]) -> Command:
    """Runs a command in this process: `command("traces", "--json")`."""

    def run(*arguments: str) -> Outcome:
        code = main(arguments, session)
        sys.stdout.flush()
        caught = capsys.readouterr()
        return Outcome(code, caught.out, caught.err)

    return run
