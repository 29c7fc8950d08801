from pathlib import Path

import pytest
from support.doors import Doors
from support.staging import Stage


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Stage:
    """Where an unexpected error would be kept is inside the stage as well."""
    stage = Stage(tmp_path)
    monkeypatch.setenv("STASH_MCP_HOME", str(stage.settings.home))
    monkeypatch.chdir(stage.settings.project_dir)
    return stage


@pytest.fixture
def doors(stage: Stage, capsys: pytest.CaptureFixture[str]) -> Doors:
    return Doors(stage, capsys)
