"""Skills over MCP (SEP-2640): what is offered, byte for byte, and what is not."""

import hashlib
import json
from typing import Any, Literal

import pytest
from mcp import Client, MCPError
from mcp.types import INVALID_PARAMS, PaginatedRequestParams, Request, TextResourceContents
from support.staging import Stage, result

from stash_mcp.models import Run
from stash_mcp.server.app import SkillServer
from stash_mcp.server.requests import SKILLS_EXTENSION, DirectoryParams, SkillParams
from stash_mcp.server.skills_extension import (
    GetSkillResult,
    ListSkillsResult,
    ReadDirectoryResult,
    SkillEntry,
)

pytestmark = pytest.mark.anyio

Mode = Literal["auto", "legacy"]
SHIPPED = ["review-sessions", "skill-from-comments"]


class ListSkills(Request[PaginatedRequestParams, Literal["skills/list"]]):
    method: Literal["skills/list"] = "skills/list"
    params: PaginatedRequestParams


class GetSkill(Request[SkillParams, Literal["skills/get"]]):
    method: Literal["skills/get"] = "skills/get"
    params: SkillParams


class ReadDirectory(Request[DirectoryParams, Literal["resources/directory/read"]]):
    method: Literal["resources/directory/read"] = "resources/directory/read"
    params: DirectoryParams


async def offered(client: Client) -> list[SkillEntry]:
    request = ListSkills(params=PaginatedRequestParams())
    return (await client.session.send_request(request, ListSkillsResult)).skills


async def get(client: Client, uri: str) -> SkillEntry:
    request = GetSkill(params=SkillParams(uri=uri))
    return (await client.session.send_request(request, GetSkillResult)).skill


async def children(client: Client, uri: str) -> dict[str, str | None]:
    request = ReadDirectory(params=DirectoryParams(uri=uri))
    rows = (await client.session.send_request(request, ReadDirectoryResult)).resources
    return {row.uri: row.mime_type for row in rows}


async def names(client: Client) -> list[str]:
    return [entry.frontmatter.name for entry in await offered(client)]


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_every_file_of_every_skill_is_read_with_the_digest_and_size_that_are_told(
    mode: Mode, server: SkillServer, stage: Stage
) -> None:
    stage.finished(("Be polite.", 0.4), ("先問訂單號碼。", 0.6))
    async with Client(server, mode=mode) as client:
        extensions = client.server_capabilities.extensions or {}
        entries = await offered(client)
        for entry in entries:
            assert await get(client, entry.uri) == entry
            assert entry.resources[0].uri == entry.uri
            for file in entry.resources:
                [content] = (await client.read_resource(file.uri)).contents
                assert isinstance(content, TextResourceContents)
                data = content.text.encode()
                assert file.size == len(data)
                assert file.digest == f"sha256:{hashlib.sha256(data).hexdigest()}"
                assert content.mime_type == "text/markdown"
    # Older protocols have no field to declare an extension in.
    declared = {"directoryRead": True} if mode == "auto" else None
    assert extensions.get(SKILLS_EXTENSION) == declared
    assert [entry.frontmatter.name for entry in entries] == [*SHIPPED, "polite-support"]
    assert len(entries[0].resources) > 1


async def test_the_wire_has_what_clients_of_the_present_protocol_expect(
    server: SkillServer,
) -> None:
    async with Client(server) as client:
        request = ListSkills(params=PaginatedRequestParams())
        answer = await client.session.send_request(request, ListSkillsResult)
    wire = json.loads(answer.model_dump_json(by_alias=True, exclude_none=True))
    assert {"skills", "ttlMs", "cacheScope"} <= wire.keys()
    assert wire["skills"][0].keys() == {"uri", "frontmatter", "resources"}


async def test_a_folder_is_read_down_to_its_files(server: SkillServer) -> None:
    root = "skill://review-sessions"
    async with Client(server) as client:
        assert await children(client, root) == {
            f"{root}/SKILL.md": "text/markdown",
            f"{root}/references": "inode/directory",
        }
        assert await children(client, f"{root}/") == await children(client, root)
        assert await children(client, f"{root}/references") == {
            f"{root}/references/label-errors.md": "text/markdown"
        }


@pytest.mark.parametrize(
    "uri",
    [
        "skill://none/SKILL.md",
        "skill://review-sessions",
        "stash://runs/x",
        "skill://",
        "file:///etc",
    ],
)
async def test_a_skill_that_is_not_offered_is_refused(uri: str, server: SkillServer) -> None:
    async with Client(server) as client:
        with pytest.raises(MCPError) as refused:
            await get(client, uri)
    assert refused.value.code == INVALID_PARAMS


@pytest.mark.parametrize(
    "uri", ["skill://review-sessions/SKILL.md", "skill://review-sessions/ref", "skill://none", "x"]
)
async def test_what_is_no_folder_is_refused(uri: str, server: SkillServer) -> None:
    async with Client(server) as client:
        with pytest.raises(MCPError) as refused:
            await children(client, uri)
    assert refused.value.code == INVALID_PARAMS


def finished(stage: Stage, body: str, *, score: float = 0.6, **changes: Any) -> Run:
    """A run that succeeded; `changes` to its result."""
    scored = (("Be polite.", 0.4), (body, score))
    run = stage.running(*scored)
    stage.store.succeed(run.id, json.dumps({**result(scored), **changes}))
    return run


async def test_of_several_runs_for_one_skill_the_newest_is_offered(
    server: SkillServer, stage: Stage
) -> None:
    finished(stage, "The older text.")
    finished(stage, "The newer text.")
    finished(stage, "No better.", verdict="No improvement: no proposal beat the seed (0.400).")
    stage.cancelled(("Seed.", 0.4), ("Partial.", 0.9))
    async with Client(server) as client:
        assert await names(client) == [*SHIPPED, "polite-support"]
        [content] = (await client.read_resource("skill://polite-support/SKILL.md")).contents
    assert isinstance(content, TextResourceContents)
    assert content.text.endswith("The newer text.")


async def test_a_skill_that_a_host_would_execute_or_that_did_not_help_is_not_offered(
    server: SkillServer, stage: Stage
) -> None:
    finished(stage, "First run !`curl example.org`.")
    finished(stage, "Worse.", verdict="Worse: on 8 held-out conversations ...")
    finished(stage, "Below the seed.", score=0.3)
    async with Client(server) as client:
        assert await names(client) == SHIPPED
        with pytest.raises(MCPError, match="There are: review-sessions"):
            await client.read_resource("skill://polite-support/SKILL.md")
