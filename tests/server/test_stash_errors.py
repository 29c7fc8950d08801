"""What goes wrong at Stash, as the text of a tool's answer: what to do, and never the key."""

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest
from mcp import Client
from mcp.types import TextContent
from stand_in_stash import Odd
from stand_in_stash.world import EXPIRED, GOOD, OTHER, PLAIN, READER
from support.staging import conversation, jsonl
from support.two_sides import TwoSides, trained_at_stash, two_sides

from stash_mcp.server.app import build_server

pytestmark = pytest.mark.anyio

UNKNOWN = "stash:1b4e28ba-2fa1-11d2-883f-0016d3cca427"
HTML = b"<html><head><title>Attention Required</title></head></html>"


@pytest.fixture
def both(tmp_path: Path) -> Iterator[TwoSides]:
    with two_sides(tmp_path) as opened:
        yield opened


async def refused(both: TwoSides, tool: str, **arguments: object) -> str:
    stage = both.stage
    server = build_server(
        lambda: both.backend, stage.settings.project_dir, clock=stage.clock, poll_seconds=0.01
    )
    async with Client(server) as client:
        answer = await client.call_tool(tool, arguments)
    [block] = answer.content
    assert isinstance(block, TextContent)
    assert answer.is_error, block.text
    assert "Traceback" not in block.text
    assert "unexpected" not in block.text
    return block.text


@pytest.mark.parametrize(
    ("key", "tool", "arguments", "says"),
    [
        (EXPIRED, "list_traces", {"backend": "stash"}, ("does not accept the key", "new key")),
        ("mc_wrong_0123", "get_run", {"run_id": UNKNOWN}, ("does not accept the key", "new key")),
        (
            READER,
            "import_traces",
            {"data": jsonl([conversation("a")]).decode(), "backend": "stash"},
            ("The key may not do this", "Use a key that may write"),
        ),
        (PLAIN, "list_reward_models", {"backend": "stash"}, ("not enabled", "Ask Stash to")),
        (OTHER, "get_trace", {"trace_id": UNKNOWN}, ("Stash says", "List what there is")),
        (GOOD, "get_trace", {"trace_id": "stash:../x"}, ("no id of a trace", "List them")),
        (None, "list_traces", {"backend": "stash"}, ("There is no key for", "STASH_API_KEY")),
    ],
)
async def test_a_key_that_does_not_do_and_an_unknown_id_are_told_apart(
    both: TwoSides,
    key: str | None,
    tool: str,
    arguments: dict[str, object],
    says: tuple[str, ...],
) -> None:
    both.key = key
    said = await refused(both, tool, **arguments)
    assert all(words in said for words in says), said
    assert not key or key not in said


@pytest.mark.parametrize(
    ("odd", "says"),
    [
        (Odd(status=403, content_type="text/html", body=HTML), ("403", "Attention Required")),
        (Odd(status=429, body=b"{}", headers={"retry-after": "99"}), ("too often", "99 seconds")),
        (Odd(status=500, body=b'{"detail": "boom"}'), ("status 500", "boom")),
        (Odd(status=503, content_type="text/html", body=HTML), ("503", "Attention Required")),
        (Odd(body=HTML, content_type="text/html"), ("not Stash's API", "STASH_URL")),
        (Odd(body=b'{"traces": 3}'), ("does not fit at",)),
        (Odd(status=302, headers={"location": "http://other.example/x"}), ("the key does not go",)),
    ],
    ids=["403 page", "429", "500", "503 page", "page", "shape", "redirect"],
)
async def test_what_a_gateway_or_a_broken_server_answers_is_said_in_words(
    both: TwoSides, odd: Odd, says: tuple[str, ...]
) -> None:
    both.stash.always = odd
    said = await refused(both, "list_traces", backend="stash")
    assert all(words in said for words in says), said
    assert both.stash.key not in said


async def test_a_run_of_a_model_in_training_names_its_state(both: TwoSides) -> None:
    model = trained_at_stash(both)
    [job] = both.stash.world.models.values()
    job.status = "running"
    said = await refused(both, "start_gepa_run", reward_model_id=model, task_model="openai/x")
    assert "is running" in said


async def test_an_older_server_that_wants_a_name_is_explained(both: TwoSides) -> None:
    model = trained_at_stash(both)
    both.stash.world.wants_skill_name = True
    said = await refused(both, "start_gepa_run", reward_model_id=model, task_model="openai/x")
    assert "wants a skill's name" in said
    assert both.backend.known_runs() == []


async def test_a_lost_answer_to_a_start_makes_one_run_and_it_is_followed(both: TwoSides) -> None:
    model = trained_at_stash(both)
    stage = both.stage
    # The list before, for an equal one; then the start, done but not answered.
    both.stash.odd.extend([None, Odd(reset=True, after_effect=True)])
    server = build_server(lambda: both.backend, stage.settings.project_dir, clock=stage.clock)
    async with Client(server) as client:
        order = {"reward_model_id": model, "task_model": "openai/x"}
        answer = await client.call_tool("start_gepa_run", order)
    assert not answer.is_error
    assert len(both.stash.world.runs) == 1
    [known] = both.backend.known_runs()
    assert known.install_state == "waiting"


async def test_the_key_is_in_no_log(both: TwoSides, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        trained_at_stash(both)
        both.stash.always = Odd(status=500, body=f'{{"detail": "{both.stash.key}"}}'.encode())
        said = await refused(both, "list_traces", backend="stash")
    assert both.stash.key not in said
    assert both.stash.key not in caplog.text
