"""The record of what was installed where."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from stash_mcp.errors import NotWritableError
from stash_mcp.models import Installation
from stash_mcp.skills.manifest import Manifest
from stash_mcp.storage.database import Database


@pytest.fixture
def manifest(tmp_path: Path) -> Manifest:
    return Manifest(Database(tmp_path / "library.db"))


def installation(path: str = "/p/SKILL.md", candidate: int = 1) -> Installation:
    return Installation(
        path=path,
        name="x",
        agent="claude-code",
        scope="user",
        run_id="run-1",
        candidate=candidate,
        sha256="0" * 64,
        installed_at=datetime(2026, 3, 1, tzinfo=UTC),
    )


def test_the_latest_record_of_a_path_comes_back_as_it_was_given(manifest: Manifest) -> None:
    for candidate in (1, 3, 2):
        manifest.record(installation(candidate=candidate))
    manifest.record(installation(path="/other"))
    assert manifest.latest("/p/SKILL.md") == installation(candidate=2)
    assert manifest.latest("/p/skill.md") is None


def test_all_are_listed_oldest_first(manifest: Manifest) -> None:
    manifest.record(installation(candidate=2))
    manifest.record(installation(candidate=1))
    assert [row.candidate for row in manifest.all()] == [2, 1]


def test_nothing_is_recorded_when_the_writing_fails(manifest: Manifest) -> None:
    with (
        pytest.raises(NotWritableError, match="no"),
        manifest.recording(installation()),
    ):
        raise NotWritableError("no", "no")
    assert manifest.all() == []
