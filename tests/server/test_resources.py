"""What a client reads by its address, in both eras of the protocol, over a real library."""

import json
from typing import Literal

import pytest
from mcp import Client, MCPError
from mcp.types import INVALID_PARAMS, TextResourceContents
from support.staging import Stage, conversation, jsonl

from stash_mcp.backends.installations import InstallOrder
from stash_mcp.server import catalogue
from stash_mcp.server.app import SkillServer
from stash_mcp.server.offered_skills import OfferedSkills
from stash_mcp.server.resource_uris import installed_text_uri, report_uri, run_uri
from stash_mcp.skills.document import MAX_BODY_CHARACTERS
from stash_mcp.skills.shipped import folder_of

pytestmark = pytest.mark.anyio

Mode = Literal["auto", "legacy"]
LIMIT = 10_000


async def read(client: Client, uri: str) -> TextResourceContents:
    answer = await client.read_resource(uri)
    [content] = answer.contents
    assert isinstance(content, TextResourceContents)
    assert content.uri == uri
    return content


async def text(client: Client, uri: str) -> str:
    return (await read(client, uri)).text


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_a_finished_run_is_read_as_state_report_and_candidate(
    mode: Mode, server: SkillServer, stage: Stage
) -> None:
    run = stage.finished(("Be polite.", 0.4), ("Ask for the order number.", 0.6))
    async with Client(server, mode=mode) as client:
        state = json.loads(await text(client, run_uri(run.id)))
        told = (await client.call_tool("get_run", {"run_id": run.id})).structured_content
        report = await read(client, report_uri(run.id))
        candidate = await read(client, f"{run_uri(run.id)}/candidates/1/SKILL.md")
    assert state == told
    assert (report.mime_type, candidate.mime_type) == ("text/markdown", "text/markdown")
    assert candidate.text == stage.backend.list_candidates(run.id)[1].skill
    assert run.verdict is not None
    assert run.verdict in report.text
    assert "seed 0.410, best 0.580, gain +0.170 (95 % interval -0.020 to +0.360)" in report.text
    assert "| 1 | 0.600 | +0.200 | 0 | Ask for the order number. |" in report.text
    assert "+Ask for the order number." in report.text
    assert "ranks 2 of 2 held-out pairs right, too few to tell" in report.text


async def test_the_report_of_a_run_that_failed_or_has_just_begun_says_so(
    server: SkillServer, stage: Stage
) -> None:
    failed = stage.failed(("Seed.", 0.4))
    stopped = stage.cancelled(("Seed.", 0.4), ("Better.", 0.5))
    waiting = stage.start(stage.trained().id)
    async with Client(server) as client:
        said = await text(client, report_uri(failed.id))
        nothing_yet = await text(client, report_uri(waiting.id))
        partial = await text(client, report_uri(stopped.id))
    assert "The task model refused the key." in said
    assert "The seed is the best so far." in said
    assert "**Queued.**" in nothing_yet
    assert "Candidates" not in nothing_yet
    assert "The run failed before its end" in said
    assert "A partial result" in partial
    assert "Nothing was measured on held-out conversations." in partial


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_a_conversation_is_read_with_what_reviewers_said(
    mode: Mode, server: SkillServer, stage: Stage
) -> None:
    stage.backend.import_traces(jsonl([conversation("shop/a b", "Hi ```", "Hello.")]))
    async with Client(server, mode=mode) as client:
        noted = await client.call_tool(
            "annotate_trace",
            {"trace_id": "shop/a b", "step": 1, "rating": "up", "comment": "Say hello.\nAlways."},
        )
        shown = await text(client, "stash://traces/shop%2Fa%20b")
    assert not noted.is_error
    assert "````\nuser: Hi ```\n````" in shown
    assert "## Step 1: assistant" in shown
    assert "(up): Say hello. Always." in shown


async def test_an_installed_skill_is_read_as_it_stands_on_disk(
    server: SkillServer, stage: Stage
) -> None:
    run = stage.finished(("Be polite.", 0.4), ("Ask for the order number.", 0.6))
    [done] = stage.backend.install_skill(InstallOrder(run_id=run.id))
    path = stage.settings.project_dir / ".claude" / "skills" / "polite-support" / "SKILL.md"
    uri = installed_text_uri("polite-support")
    async with Client(server) as client:
        fresh = await text(client, uri)
        path.write_text("By hand.", "utf-8")
        edited = await text(client, uri)
        state = json.loads(await text(client, "stash://skills/polite-support"))
        path.unlink()
        with pytest.raises(MCPError, match="rollback_skill"):
            await text(client, uri)
    assert done.installation.path == str(path)
    assert fresh == stage.backend.list_candidates(run.id)[1].skill
    assert edited == "By hand."
    assert state["skills"][0]["state"] == "edited"


NOT_THERE = {
    "stash://runs/none": "list_runs",
    "stash://runs/none/report": "list",
    "stash://runs/{run}/candidates/7/SKILL.md": "It has 0 to 1",
    "stash://runs/{run}/candidates/x/SKILL.md": "count from 0",
    "stash://runs/{run}/candidates/%C2%B2/SKILL.md": "count from 0",
    "stash://runs/{run}/candidates/99999999999/SKILL.md": "count from 0",
    "stash://traces/..%2F..%2Fetc%2Fpasswd": "list_traces",
    "stash://traces/%00": "list_traces",
    "stash://skills/none": "list_installed_skills",
    "stash://skills/none/SKILL.md": "list_installed_skills",
    "skill://none/SKILL.md": "review-sessions",
    "skill://review-sessions/..%2F..%2Fpyproject.toml": "SKILL.md",
    "skill://review-sessions/references": "references/label-errors.md",
    "stash://nothing/here": "stash://runs/{run_id}",
    "stash://runs/": "list_runs",
    "": "stash://runs/{run_id}",
}
"""Addresses, and words of the answer: what there is, or how to find out."""


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_what_is_not_there_is_refused_with_what_to_do(
    mode: Mode, server: SkillServer, stage: Stage
) -> None:
    run = stage.finished(("Be polite.", 0.4), ("Ask for the order number.", 0.6))
    async with Client(server, mode=mode) as client:
        for uri, words in NOT_THERE.items():
            with pytest.raises(MCPError) as refused:
                await client.read_resource(uri.replace("{run}", run.id))
            assert refused.value.code == INVALID_PARAMS, uri
            assert words in refused.value.message, uri


async def test_the_largest_of_everything_fits_into_ten_thousand_tokens(
    server: SkillServer, stage: Stage
) -> None:
    long = "先問訂單號碼。" * (MAX_BODY_CHARACTERS // 7)
    lines = "\n".join(f"- Rule {number:04}: ask {'!' * 30}" for number in range(400))
    run = stage.finished(*((f"{number} {lines}", 0.4) for number in range(30)), (long, 0.6))
    stage.backend.import_traces(
        jsonl([conversation("long", *("<begin>" + "x" * 9000 + "<end>" for _ in range(60)))])
    )
    async with Client(server) as client:
        report = await text(client, report_uri(run.id))
        candidate = await text(client, f"{run_uri(run.id)}/candidates/30/SKILL.md")
        talk = await text(client, "stash://traces/long")
    assert candidate.endswith(long)
    for shown in (report, talk):
        assert len(shown.encode()) < 3 * LIMIT
        assert "left out" in shown
    assert "11 more: list_candidates" in report
    assert 'get_trace(trace_id="long", from_step=' in talk


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_the_list_comes_in_pages_with_skills_first_and_the_newest_reports(
    mode: Mode, server: SkillServer, stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(catalogue, "REPORTS_LISTED", 5)
    monkeypatch.setattr(catalogue, "PAGE_ROWS", 3)
    stage.conversations()
    model = stage.trained().id
    runs = [stage.start(model).id for _ in range(7)]
    seen: list[str] = []
    async with Client(server, mode=mode) as client:
        cursor: str | None = None
        while True:
            page = await client.list_resources(cursor=cursor)
            assert len(page.resources) <= 3
            seen += [row.uri for row in page.resources]
            cursor = page.next_cursor
            if cursor is None:
                break
        with pytest.raises(MCPError, match="Start without a cursor"):
            await client.list_resources(cursor="elsewhere")
    assert seen[:2] == ["skill://review-sessions/SKILL.md", "skill://skill-from-comments/SKILL.md"]
    assert seen[2:] == [report_uri(run_id) for run_id in runs[::-1][:5]]


async def test_a_page_of_the_longest_descriptions_fits(
    server: SkillServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    skills = tuple(folder_of(_described(f"skill-{number:02}")) for number in range(40))
    monkeypatch.setattr(OfferedSkills, "all", lambda _self: skills)
    async with Client(server) as client:
        page = await client.list_resources()
    assert page.next_cursor is not None
    assert len(page.model_dump_json(exclude_none=True)) < 3 * LIMIT


def _described(name: str) -> str:
    return f"---\nname: {name}\ndescription: {'long ' * 200}\n---\n\nBody."


async def test_every_address_has_a_template_with_title_and_description(
    server: SkillServer,
) -> None:
    async with Client(server) as client:
        templates = (await client.list_resource_templates()).resource_templates
    assert {row.uri_template for row in templates} == {
        "stash://runs/{run_id}",
        "stash://runs/{run_id}/report",
        "stash://runs/{run_id}/candidates/{candidate}/SKILL.md",
        "stash://traces/{trace_id}",
        "stash://skills/{skill}",
        "stash://skills/{skill}/SKILL.md",
        "skill://{skill}/{+path}",
    }
    for row in templates:
        assert row.title
        assert row.description
        assert row.mime_type
