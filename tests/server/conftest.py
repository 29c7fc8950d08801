from pathlib import Path

import pytest
from support.staging import Stage

from stash_mcp.server.app import SkillServer, build_server


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path)


@pytest.fixture
def server(stage: Stage) -> SkillServer:
    return build_server(
        lambda: stage.backend, stage.settings.project_dir, clock=stage.clock, poll_seconds=0.01
    )
