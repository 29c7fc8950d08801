"""Whatever comes back, a call returns or refuses in time, and the key goes nowhere else."""

import json
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from stand_in_stash import KEYS, Odd, StandIn, stand_in
from support.stash_calls import Known, client_of, every_call, furnished

from stash_mcp.errors import StashError
from stash_mcp.stash import Limits, StashClient, download_weights

LIMITS = Limits(
    connect_seconds=1,
    read_seconds=0.15,
    total_seconds=0.3,
    attempts=2,
    first_pause_seconds=0,
    answer_bytes=200_000,
)
LONGEST_SECONDS = 5
"""A POST may be followed by looks; each request has its own total time."""


@dataclass(frozen=True)
class Scene:
    stash: StandIn
    client: StashClient
    calls: dict[str, Callable[[StashClient], object]]
    right: dict[str, bytes]
    """Right answers by call, to be spoiled."""


@pytest.fixture(scope="module")
def scene() -> Iterator[Scene]:
    with stand_in() as stash, client_of(stash, stash.key, LIMITS) as client:
        stash.world.weights = stash.storage.data = b"\x1f\x8b" + bytes(100)
        with client_of(stash, stash.key) as patient:
            known = furnished(patient)
        calls = every_call(known)
        calls["weights"] = _weights_of(known)
        yield Scene(stash, client, calls, _right_answers(known, stash))


def _weights_of(known: Known) -> Callable[[StashClient], object]:
    def call(client: StashClient) -> object:
        with tempfile.TemporaryDirectory() as folder:
            return download_weights(client, known.model, Path(folder), max_bytes=100_000)

    return call


def _right_answers(known: Known, stash: StandIn) -> dict[str, bytes]:
    """As the stand-in gives them, by the calls that read."""
    answers: dict[str, bytes] = {}
    given = stash.answer
    with client_of(stash, stash.key) as client:
        for name, call in every_call(known).items():
            if name.startswith(("delete", "annotate", "train", "start")):
                continue
            with _recorded(stash) as bodies:
                call(client)
            answers[name] = bodies[-1]
    assert stash.answer == given
    return answers


@contextmanager
def _recorded(stash: StandIn) -> Iterator[list[bytes]]:
    bodies: list[bytes] = []
    given = stash.answer

    def answer(asked: Any) -> Any:
        reply, odd = given(asked)
        bodies.append(reply.body)
        return reply, odd

    stash.answer = answer  # type: ignore[method-assign]
    yield bodies
    del stash.answer


JUNK = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=20)
    | st.sampled_from(["../..", "\x00", "9" * 400, "2026-01-01T00:00:00", "a\nb"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=5,
)


def _spoiled(draw: st.DrawFn, value: Any) -> Any:
    """`value` with something in it replaced, left out or added."""
    if isinstance(value, dict) and value and draw(st.integers(0, 3)):
        key = draw(st.sampled_from(sorted(value)))
        match draw(st.sampled_from(["in", "in", "in", "out", "more"])):
            case "in":
                return {**value, key: _spoiled(draw, value[key])}
            case "out":
                return {name: kept for name, kept in value.items() if name != key}
            case _:
                return {**value, draw(st.text(max_size=8)): draw(JUNK)}
    if isinstance(value, list) and value and draw(st.integers(0, 3)):
        index = draw(st.integers(0, len(value) - 1))
        return [*value[:index], _spoiled(draw, value[index]), *value[index + 1 :]]
    return draw(JUNK)


@st.composite
def bodies(draw: st.DrawFn, right: bytes) -> bytes:
    match draw(st.sampled_from(["spoiled", "spoiled", "cut", "bytes", "junk", "deep", "gzip"])):
        case "spoiled":
            try:
                value = json.loads(right)
            except ValueError:
                return right[: draw(st.integers(0, len(right)))] + draw(st.binary(max_size=9))
            return json.dumps(_spoiled(draw, value)).encode("utf-8", "replace")
        case "cut":
            return right[: draw(st.integers(0, len(right)))]
        case "bytes":
            return draw(st.binary(max_size=200))
        case "junk":
            return json.dumps(draw(JUNK)).encode("utf-8", "replace")
        case "deep":
            return draw(st.sampled_from([b"[", b'{"detail":', b'{"a":['])) * 20_000
        case _:
            return b"\x1f\x8b" + draw(st.binary(max_size=30))


HEADERS = st.dictionaries(
    st.sampled_from(
        ["Location", "Content-Encoding", "Retry-After", "Content-Length", "ETag", "Date", "X-A"]
    ),
    st.sampled_from(
        ["", "gzip", "br, gzip", "999999999", "-1", "1, 2", "0", '"a"', "no date", "x" * 9000]
    )
    | st.text(st.characters(min_codepoint=32, max_codepoint=255, exclude_characters="\x7f")),
    max_size=2,
)
TYPES = st.sampled_from(
    [
        None,
        "application/json",
        "text/html",
        "text/markdown",
        "application/x-ndjson",
        "application/gzip",
        "application/json; charset=utf-16",
        "",
        "x" * 300,
    ]
)
STATUSES = st.sampled_from(
    [None, None, None, 200, 201, 204, 206, 304, 400, 401, 403, 404, 422, 429]
)
MOVES = st.sampled_from([301, 302, 303, 307, 308])


@st.composite
def odd_answers(draw: st.DrawFn, right: bytes) -> Odd:
    return Odd(
        after_effect=draw(st.booleans()),
        status=draw(STATUSES | st.integers(500, 599)),
        content_type=draw(TYPES),
        headers=draw(HEADERS),
        body=draw(bodies(right)),
        cut=draw(st.none() | st.none() | st.integers(0, 100)),
    )


def check(scene: Scene, name: str) -> None:
    """The call returns or refuses, in time, and says no key."""
    begun = time.monotonic()
    said = _said(scene, name)
    assert time.monotonic() - begun < LONGEST_SECONDS
    assert not any(key in said for key in KEYS)
    assert scene.stash.storage.leaks(list(KEYS)) == []


def _said(scene: Scene, name: str) -> str:
    """The words of a refusal, "" for an answer; anything else that is raised fails the test."""
    try:
        scene.calls[name](scene.client)
    except StashError as error:
        return str(error)
    finally:
        scene.stash.always = None
    return ""


@settings(max_examples=250, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_an_odd_answer_is_read_or_refused(scene: Scene, data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(sorted(scene.calls)))
    right = scene.right.get(name, b'{"url": "https://127.0.0.1:1/"}')
    scene.stash.always = data.draw(odd_answers(right))
    check(scene, name)


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_the_key_follows_no_redirect_to_another_host(scene: Scene, data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(sorted(scene.calls)))
    place = data.draw(
        st.sampled_from(["", "//", "/\\", "@", "#", "?", "/api/v1/rm/gepa-runs", ":0", "%2f"])
    )
    storage = scene.stash.storage.base_url
    target = data.draw(
        st.sampled_from([f"{storage}{place}", f"//{storage[7:]}{place}", f"{place}{storage}"])
    )
    scene.stash.storage.seen.clear()
    scene.stash.always = Odd(status=data.draw(MOVES), body=b"", headers={"Location": target})
    check(scene, name)


RAW = st.sampled_from(
    [
        b"",
        b"\x00" * 100,
        b"SSH-2.0-OpenSSH_9.9\r\n",
        b"HTTP/1.1 200\r\n\r\n",
        b"HTTP/1.1 abc OK\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 9\r\n\r\n[]",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n[",
        b"HTTP/1.1 200 OK\r\nX: " + b"a" * 200_000,
        b"HTTP/1.1 100 Continue\r\n\r\n" * 3,
        b"HTTP/1.1 101 Switching Protocols\r\n\r\n",
        b"HTTP/1.0 200 OK\r\nContent-Type: application/json\r\n\r\n[",
        b"HTTP/1.0 200 OK\r\nContent-Type: application/json\r\n\r\n" + b"[" + b" " * 300_000,
        b"HTTP/1.1 200 OK\r\nContent-Type: \xff\xfe\r\nSet-Cookie: \xff=\xff\r\n\r\n[]",
    ]
)


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_what_does_not_speak_http_is_refused(scene: Scene, data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(sorted(scene.calls)))
    raw = data.draw(RAW | st.binary(max_size=60).map(lambda tail: b"HTTP/1.1 200 OK\r\n" + tail))
    scene.stash.always = Odd(raw=raw)
    check(scene, name)


@pytest.mark.parametrize("name", ["list_runs", "start_run", "skill", "export_traces", "weights"])
@pytest.mark.parametrize("odd", [Odd(hang=True), Odd(drip=0.05)], ids=["silent", "dripping"])
def test_a_server_that_takes_its_time_is_not_waited_for(scene: Scene, name: str, odd: Odd) -> None:
    scene.stash.always = odd
    check(scene, name)


# Of the client's public names, those that ask Stash for nothing.
NO_CALLS = ("close", "rest", "weights_call")


def test_the_calls_that_are_spoiled_are_all_that_there_are(scene: Scene) -> None:
    methods = {
        name for name in vars(StashClient) if not name.startswith("_") and name not in NO_CALLS
    }
    assert methods == set(scene.calls) - {"weights"}
