"""The tools for installed skills, through a client."""

from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from support.staging import Stage

from stash_mcp.models import Run
from stash_mcp.server.app import SkillServer

pytestmark = pytest.mark.anyio


@pytest.fixture
def run(stage: Stage) -> Run:
    return stage.finished(("Be polite.", 0.4), ("Ask first.", 0.6))


@pytest.fixture
def path(stage: Stage) -> Path:
    return stage.settings.project_dir / ".claude/skills/polite-support/SKILL.md"


async def call(server: SkillServer, tool: str, **arguments: object) -> dict[str, Any]:
    async with Client(server) as client:
        answer = await client.call_tool(tool, arguments)
    assert not answer.is_error, answer.content
    return answer.structured_content


async def refused(server: SkillServer, tool: str, **arguments: object) -> str:
    async with Client(server) as client:
        answer = await client.call_tool(tool, arguments)
    assert answer.is_error
    return answer.content[0].text


async def test_a_skill_goes_to_several_agents_after_a_dry_run(
    server: SkillServer, run: Run, path: Path
) -> None:
    order = {"run_id": run.id, "agents": ["claude-code", "goose"]}
    planned = await call(server, "install_skill", **order, dry_run=True)
    assert planned["dry_run"] is True
    assert "+Ask first." in planned["written"][0]["diff"]
    assert not path.exists()
    done = await call(server, "install_skill", **order)
    assert [row["agent"] for row in done["written"]] == ["claude-code", "goose"]
    assert "diff" not in done["written"][0]
    assert path.exists()


async def test_findings_are_named_and_accepted(server: SkillServer, stage: Stage) -> None:
    run = stage.finished(("Be polite.", 0.4), ("See @~/notes.md", 0.6))
    said = await refused(server, "install_skill", run_id=run.id)
    assert "accept these findings: file-reference" in said
    done = await call(server, "install_skill", run_id=run.id, accept_findings=["file-reference"])
    assert done["findings"][0].startswith("file-reference (high), line 6")


async def test_installed_skills_are_listed_rolled_back_and_taken_away(
    server: SkillServer, run: Run, path: Path
) -> None:
    for candidate in (0, 1):
        await call(server, "install_skill", run_id=run.id, candidate=candidate)
    [row] = (await call(server, "list_installed_skills"))["skills"]
    assert (row["state"], row["version"], row["score"], row["gain"]) == ("current", 2, 0.6, 0.17)
    one = await call(server, "list_installed_skills", skill="polite-support", version=1)
    assert [version["version"] for version in one["versions"]] == [2, 1]
    assert "+Be polite." in one["diff"]
    back = await call(server, "rollback_skill", skill="polite-support")
    assert (back["written"][0]["version"], back["candidate"]) == (3, 0)
    assert path.read_text("utf-8").endswith("Be polite.")
    planned = await call(server, "uninstall_skill", skill="polite-support", dry_run=True)
    assert "-Be polite." in planned["diff"]
    gone = await call(server, "uninstall_skill", skill=str(path))
    assert Path(gone["backup"]).exists()
    assert not path.exists()
    [row] = (await call(server, "list_installed_skills"))["skills"]
    assert row["state"] == "uninstalled"


async def test_an_edit_is_shown_and_never_overwritten_or_removed(
    server: SkillServer, run: Run, path: Path
) -> None:
    await call(server, "install_skill", run_id=run.id, candidate=0)
    await call(server, "install_skill", run_id=run.id)
    path.write_text("mine\n", encoding="utf-8")
    assert "-mine" in await refused(server, "rollback_skill", skill="polite-support", version=1)
    assert "-mine" in await refused(server, "uninstall_skill", skill="polite-support")
    [row] = (await call(server, "list_installed_skills"))["skills"]
    assert row["state"] == "edited"
    assert path.read_text("utf-8") == "mine\n"


async def test_an_unknown_skill_is_refused_with_where_to_look(server: SkillServer) -> None:
    for tool in ("rollback_skill", "uninstall_skill", "list_installed_skills"):
        assert "No skill 'x' was installed" in await refused(server, tool, skill="x")
