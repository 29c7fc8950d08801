"""A project, a library and an installer over real folders."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pytest

from stash_mcp.settings import Settings
from stash_mcp.skills.install import Installed, install
from stash_mcp.skills.manifest import Manifest
from stash_mcp.skills.targets import Scope, Target, resolve
from stash_mcp.storage.database import Database

NOW = datetime(2026, 3, 1, 12, 30, tzinfo=UTC)


def skill_text(name: str = "refund-answers", body: str = "Be kind.") -> str:
    return f"---\nname: {name}\ndescription: Answer refund questions.\n---\n\n{body}"


@dataclass
class Bench:
    """Everything that `install` takes, with defaults."""

    settings: Settings
    manifest: Manifest

    @property
    def backups_dir(self) -> Path:
        return self.settings.backups_dir

    @property
    def skills_dir(self) -> Path:
        return self.settings.project_dir / ".claude" / "skills"

    @property
    def file(self) -> Path:
        return self.skills_dir / "refund-answers" / "SKILL.md"

    def install(
        self,
        text: str | None = None,
        *,
        scope: Scope = "project",
        run_id: str = "run-1",
        candidate: int = 1,
        force: bool = False,
        target: Target | None = None,
        backups_dir: Path | None = None,
    ) -> Installed:
        return install(
            skill_text() if text is None else text,
            target=target or resolve(self.settings, scope),
            run_id=run_id,
            candidate=candidate,
            manifest=self.manifest,
            backups_dir=backups_dir or self.backups_dir,
            force=force,
            now=NOW,
        )

    def tree(self) -> dict[str, bytes | None]:
        """Every path under the project and the user's folder; None for a folder."""
        roots = (self.settings.project_dir, self.settings.claude_config_dir)
        return {
            str(path): path.read_bytes() if path.is_file() else None
            for root in roots
            for path in root.rglob("*")
        }


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    settings = Settings(
        home=tmp_path / "home",
        project_dir=tmp_path / "project",
        claude_config_dir=tmp_path / "user" / ".claude",
        user_home=tmp_path / "user",
    )
    settings.project_dir.mkdir()
    settings.claude_config_dir.mkdir(parents=True)
    return Bench(settings, Manifest(Database(settings.library_path)))


@pytest.fixture
def make_text() -> Callable[..., str]:
    return skill_text
