"""Resources, prompts, completion and listening, of the server as a client starts it."""

import json
import sys
from pathlib import Path

import anyio
import pytest
from mcp import Client, StdioServerParameters
from mcp.shared.subscriptions import ResourcesListChanged, ResourceUpdated
from mcp.types import ResourceTemplateReference, TextContent, TextResourceContents
from support.staging import Stage, result

from stash_mcp.server.resource_uris import RUN, report_uri, run_uri
from stash_mcp.storage.files import try_lock

ROOT = Path(__file__).parents[2]
PATIENCE = 60


def parameters(home: Path, stage: Stage) -> StdioServerParameters:
    environment = {
        "STASH_MCP_HOME": str(home),
        "CLAUDE_CONFIG_DIR": str(stage.settings.claude_config_dir),
        "CLAUDE_PROJECT_DIR": str(stage.settings.project_dir),
        "PYTHONPATH": str(ROOT),
    }
    arguments = ["-m", "stash_mcp", "serve"]
    return StdioServerParameters(command=sys.executable, args=arguments, env=environment)


@pytest.mark.anyio
async def test_a_client_reads_completes_and_is_told_when_the_run_ends(stage: Stage) -> None:
    run = stage.running(("Be polite.", 0.4))
    # A worker that lives holds this; else the server would start one for the run.
    with try_lock(stage.settings.worker_lock_path) as held:
        assert held
        async with Client(parameters(stage.settings.home, stage)) as client:
            listed = [row.uri for row in (await client.list_resources()).resources]
            [report] = (await client.read_resource(report_uri(run.id))).contents
            found = await client.complete(
                ResourceTemplateReference(type="ref/resource", uri=RUN),
                {"name": "run_id", "value": "run"},
            )
            prompt = await client.get_prompt("read_candidates", {"run_id": run.id})
            listening = client.listen(
                resources_list_changed=True, resource_subscriptions=[run_uri(run.id)]
            )
            async with listening as stream:
                stage.store.succeed(run.id, json.dumps(result((("Be polite.", 0.4),))))
                with anyio.fail_after(PATIENCE):
                    told = [await anext(stream), await anext(stream)]
    assert report_uri(run.id) in listed
    assert isinstance(report, TextResourceContents)
    assert "**Running.**" in report.text
    assert found.completion.values == [run.id]
    content = prompt.messages[0].content
    assert isinstance(content, TextContent)
    assert run.id in content.text
    assert told == [ResourceUpdated(uri=run_uri(run.id)), ResourcesListChanged()]


@pytest.mark.anyio
async def test_listing_what_there_is_makes_no_library(tmp_path: Path, stage: Stage) -> None:
    home = tmp_path / "untouched"
    async with Client(parameters(home, stage), mode="legacy") as client:
        listed = (await client.list_resources()).resources
        await client.list_prompts()
        assert not home.exists()
    assert [row.name for row in listed] == ["review-sessions", "skill-from-comments"]
