"""A library of many and of large conversations, and a Stash that does not take it all at once."""

import json
import os
import subprocess
import sys
import tracemalloc

import pytest
from stand_in_stash import Odd, StandIn
from stand_in_stash.routes import Asked, Reply
from support.both_sides import BothSides, talk
from support.stash_calls import client_of

from stash_mcp.backends.base import AnnotationDraft
from stash_mcp.backends.hybrid.pushing import BATCH_BYTES, BATCH_TRACES
from stash_mcp.errors import LibraryBusyError, StashError, StashKeyError, StashRateLimitError

SLOW_DOWN = b'{"detail": "slow down"}'


def too_often(seconds: int) -> Odd:
    """A gateway's refusal, which has had no effect."""
    return Odd(
        status=429,
        content_type="application/json",
        headers={"Retry-After": str(seconds)},
        body=SLOW_DOWN,
    )


def taking_at_most(stash: StandIn, size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a gateway with a limit of a request's body."""
    real = stash.answer

    def answer(asked: Asked) -> tuple[Reply, Odd]:
        if len(asked.body) <= size:
            return real(asked)
        stash.asked.append(asked)
        page = b"<html><title>413 Request Entity Too Large</title></html>"
        return Reply(page, 413, "text/html"), Odd()

    monkeypatch.setattr(stash, "answer", answer)


@pytest.mark.parametrize("size", [3_000, 30_000])
def test_one_that_is_too_large_is_named_and_the_others_go_on(
    sides: BothSides, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    taking_at_most(sides.stash, size, monkeypatch)
    sides.import_here(*(talk(f"t{number}", "x" * 500) for number in range(7)))
    sides.import_here(talk("large", "x" * 40_000))
    sides.backend.annotate(AnnotationDraft(trace_id="t6", comment="Fine."))
    report = sides.push()
    assert (report.traces.new, report.annotations.new) == (7, 1)
    [held] = report.refused
    assert (held.trace_id, "too large" in held.why) == ("large", True)


def test_a_comment_that_is_too_large_is_named_and_the_others_go_on(
    sides: BothSides, monkeypatch: pytest.MonkeyPatch
) -> None:
    taking_at_most(sides.stash, 3_000, monkeypatch)
    sides.import_here(talk("a"))
    for comment in ("First.", "x" * 5_000, "Last."):
        sides.backend.annotate(AnnotationDraft(trace_id="a", comment=comment))
    report = sides.push()
    [held] = report.refused
    assert (held.trace_id, "too large" in held.why) == ("a", True)
    assert [said[2] for said in sides.said_there()] == ["First.", "Last."]


def test_a_key_that_only_reads_says_so_before_more_is_read(sides: BothSides) -> None:
    sides.import_here(talk("a"))
    sides.push()
    sides.import_here(talk("a", "Hello", "Changed."), *(talk(f"t{n}") for n in range(60)))
    asked = len(sides.stash.asked)
    with (
        client_of(sides.stash, "mc_reader_0123456789abcd") as client,
        pytest.raises(StashKeyError, match="read-only"),
    ):
        sides.hybrid(client).push()
    assert [known.method for known in sides.stash.asked[asked:]] == ["GET", "POST"]


def test_a_push_waits_as_long_as_it_is_told(sides: BothSides) -> None:
    sides.import_here(talk("a"))
    sides.backend.annotate(AnnotationDraft(trace_id="a", comment="Fine."))
    # The list, the import, the conversation and the annotation: each is refused once.
    sides.stash.odd.extend([too_often(2), None] * 4)
    report = sides.push()
    assert (report.traces.new, report.annotations.new) == (1, 1)
    assert sides.said_there() == [("a", None, "Fine.")]


@pytest.mark.parametrize("asked", range(1, 6))
def test_a_push_that_is_told_to_wait_for_long_ends_and_is_carried_on(
    sides: BothSides, asked: int
) -> None:
    sides.import_here(talk("a"), talk("b"))
    for id in ("a", "b"):
        sides.backend.annotate(AnnotationDraft(trace_id=id, comment=f"On {id}."))
    sides.stash.odd.extend([None] * asked)
    sides.stash.always = too_often(3_600)
    with pytest.raises(StashRateLimitError, match="3600 seconds"):
        sides.push()
    sides.stash.always = None
    sides.push()
    assert sides.said_there() == [("a", None, "On a."), ("b", None, "On b.")]


def test_a_push_that_is_killed_at_a_request_is_carried_on(sides: BothSides) -> None:
    """A real process, killed while Stash does not answer."""
    sides.import_here(*(talk(f"t{number}") for number in range(BATCH_TRACES + 20)))
    sides.backend.annotate(AnnotationDraft(trace_id="t7", comment="Fine."))
    sides.stash.odd.extend([None, None])
    sides.stash.always = Odd(hang=True)
    environment = {
        **os.environ,
        "STASH_MCP_HOME": str(sides.stage.settings.home),
        "STASH_URL": sides.stash.base_url,
        "STASH_API_KEY": sides.stash.key,
    }
    command = [sys.executable, "-m", "stash_mcp", "push"]
    with subprocess.Popen(command, env=environment, stderr=subprocess.PIPE) as pushing:
        assert pushing.stderr is not None
        # It says how many are there when the first batch is.
        assert b"Conversations at Stash by now: 100." in pushing.stderr.readline()
        for at_once in (sides.push, sides.pull):
            with pytest.raises(LibraryBusyError):
                at_once()
        pushing.kill()
    sides.stash.always = None
    report = sides.push()
    assert (report.traces.unchanged, report.traces.new) == (BATCH_TRACES, 20)
    assert len(sides.stash.world.traces) == BATCH_TRACES + 20
    assert sides.said_there() == [("t7", None, "Fine.")]


def test_a_large_library_is_never_held_whole(
    sides: BothSides, monkeypatch: pytest.MonkeyPatch
) -> None:
    count, size = 60, 200_000
    sides.import_here(*(talk(f"t{number}", "x" * size) for number in range(count)))
    received: list[int] = []

    def answer(asked: Asked) -> tuple[Reply, Odd]:
        if asked.method == "GET":
            return Reply(b'{"traces": [], "total": 0}'), Odd()
        lines = json.loads(asked.body)["data"].splitlines()
        start = sum(received)
        received.append(len(lines))
        ids = [f"00000000-0000-4000-8000-{start + n:012}" for n in range(len(lines))]
        row = {"format": "stash", "imported": len(ids), "trace_ids": ids}
        return Reply(json.dumps(row).encode()), Odd()

    monkeypatch.setattr(sides.stash, "answer", answer)
    with client_of(sides.stash, sides.stash.key) as client:
        tracemalloc.start()
        try:
            sides.hybrid(client).push()
            _, most = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    assert sum(received) == count
    # The stand-in holds a request too, and JSON is made of it and read from it in whole.
    assert most < 8 * BATCH_BYTES < count * size * 1.01


def test_stash_is_named_where_it_fails(sides: BothSides) -> None:
    sides.import_here(talk("a"))
    sides.stash.always = Odd(status=503, content_type="text/html", body=b"<title>Sorry</title>")
    with pytest.raises(StashError, match="503"):
        sides.push()
