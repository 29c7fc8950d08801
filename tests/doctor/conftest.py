from pathlib import Path

import pytest

from stash_mcp.agents.surroundings import Surroundings, here
from stash_mcp.settings import Settings


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    for name in ("home", "project", "user"):
        (tmp_path / name).mkdir()
    return Settings(
        home=tmp_path / "home",
        project_dir=tmp_path / "project",
        claude_config_dir=tmp_path / "user" / ".claude",
        user_home=tmp_path / "user",
        xdg_config_home=tmp_path / "user" / ".config",
    )


@pytest.fixture
def surroundings() -> Surroundings:
    return here()
