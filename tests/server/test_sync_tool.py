"""The tool that exchanges with Stash, by an MCP client, against a stand-in over real HTTP."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from stand_in_stash import StandIn, stand_in
from support.both_sides import BothSides, jsonl, talk
from support.staging import Stage

from stash_mcp.server.app import SkillServer

pytestmark = pytest.mark.anyio


@pytest.fixture
def stash(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> Iterator[StandIn]:
    with stand_in() as running:
        monkeypatch.setenv("STASH_MCP_HOME", str(stage.settings.home))
        monkeypatch.setenv("STASH_URL", running.base_url)
        monkeypatch.setenv("STASH_API_KEY", running.key)
        yield running


@pytest.fixture
def there(tmp_path: Path, stash: StandIn) -> Iterator[BothSides]:
    both = BothSides(tmp_path / "other", stash)
    yield both
    both.close()


async def call(server: SkillServer, **arguments: object) -> Any:
    async with Client(server) as client:
        return await client.call_tool("sync_with_stash", dict(arguments))


async def test_pull_brings_what_a_pattern_fits(
    server: SkillServer, stage: Stage, there: BothSides
) -> None:
    there.import_there(talk("shop-1"), talk("other"))
    answer = await call(server, action="pull", trace_ids=["shop-*"])
    assert answer.structured_content["in_words"].startswith("Conversations: 1 new")
    assert [row.id for row in stage.backend.list_traces(limit=5, offset=0).traces] == ["shop-1"]


async def test_push_names_what_it_left_as_it_is(
    server: SkillServer, stage: Stage, there: BothSides
) -> None:
    there.import_there(talk("a", "Theirs", "Theirs."))
    stage.backend.import_traces(jsonl([talk("a", "Mine", "Mine."), talk("b")]))
    counted = await call(server, action="push", dry_run=True)
    assert "A push would do this" in counted.structured_content["in_words"]
    answer = await call(server, action="push")
    assert answer.structured_content["held"] == ["a: Stash has another conversation of this id"]
    assert (len(there.texts_there("a")), len(there.texts_there("b"))) == (1, 1)


async def test_rescore_without_a_run_is_refused(server: SkillServer, stash: StandIn) -> None:
    answer = await call(server, action="rescore")
    assert answer.is_error
    assert "rescore needs the id of a run" in answer.content[0].text


async def test_without_a_key_it_says_where_one_goes(
    server: SkillServer, stash: StandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("STASH_API_KEY")
    answer = await call(server, action="pull")
    assert answer.is_error
    assert "Put one into STASH_API_KEY" in answer.content[0].text
    assert stash.asked == []
