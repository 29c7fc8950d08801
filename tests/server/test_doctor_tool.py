import json

import pytest
from mcp import Client

from stash_mcp.server.app import SkillServer

pytestmark = pytest.mark.anyio


async def test_the_answer_is_short_and_says_what_to_do(server: SkillServer) -> None:
    async with Client(server) as client:
        answer = await client.call_tool("doctor", {})
    assert not answer.is_error
    assert answer.structured_content is not None
    checks = {row["name"]: row for row in answer.structured_content["checks"]}
    assert checks["keys"]["state"] == "warning"
    assert "ANTHROPIC_API_KEY" in checks["keys"]["fix"]
    assert checks["models"]["state"] == "not checked"
    assert len(json.dumps(answer.structured_content)) / 4 < 2_000


async def test_an_installation_that_cannot_be_done_is_refused_with_the_line(
    server: SkillServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dataclasses import replace

    from stash_mcp.server import doctor_tool

    elsewhere = replace(doctor_tool.here(), kind="uvx")
    monkeypatch.setattr(doctor_tool, "here", lambda: elsewhere)
    async with Client(server) as client:
        answer = await client.call_tool("doctor", {"install": "local"})
    [block] = answer.content
    assert answer.is_error
    assert "uv tool install" in block.text  # type: ignore[union-attr]
