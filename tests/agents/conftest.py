from datetime import UTC, datetime
from pathlib import Path

import pytest

from stash_mcp.agents.entries import Server
from stash_mcp.agents.setup import Order, Setup, Step
from stash_mcp.agents.table import agent
from stash_mcp.settings import Settings

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
COMMAND = ["/opt/env/bin/stash-skills", "serve"]


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    user = tmp_path / "user"
    for folder in (user, tmp_path / "project"):
        folder.mkdir()
    return Settings(
        home=tmp_path / "home",
        project_dir=tmp_path / "project",
        claude_config_dir=user / ".claude",
        user_home=user,
        xdg_config_home=user / ".config",
    )


class Desk:
    """Sets agents up as a person does."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.server = Server(COMMAND)
        self.programs: dict[str, str] = {}

    def plan(self, agent_id: str, **order: object) -> Step:
        return self._setup.plan([agent(agent_id)], Order(**order))[0]  # type: ignore[arg-type]

    def do(self, agent_id: str, **order: object) -> Step:
        return self.carry_out(self.plan(agent_id, **order))

    def carry_out(self, step: Step) -> Step:
        return self._setup.do(step, NOW)

    @property
    def _setup(self) -> Setup:
        return Setup(self.settings, self.server, self.programs.get)


@pytest.fixture
def desk(settings: Settings) -> Desk:
    return Desk(settings)
