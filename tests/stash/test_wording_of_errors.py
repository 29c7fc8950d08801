"""What a person reads of a failure at Stash: whole sentences, the place, and no secret."""

import json
import re
import socket
import ssl
from collections.abc import Iterator
from datetime import UTC, datetime

import httpx2
import pytest

from stash_mcp.errors import (
    StashAddressError,
    StashError,
    StashSkillsError,
    StashUnreachableError,
    sentence,
)
from stash_mcp.settings import Proxy, StashAccess, proxy_for
from stash_mcp.stash import Limits, open_client
from stash_mcp.stash.address import address_of
from stash_mcp.stash.answers import read_text
from stash_mcp.stash.connection import Answer
from stash_mcp.stash.failures import FAILURES, translated
from stash_mcp.stash.refusals import refused

NOW = datetime(2026, 11, 1, tzinfo=UTC)
KEY = "mc_good_0123456789abcdef"
PROXY = Proxy("proxy.example:3128", "HTTPS_PROXY")
QUICK = Limits(connect_seconds=2, read_seconds=2, total_seconds=4, attempts=1)
BODIES = (
    b"",
    b"busy",
    b"Bad gateway.\nMore",
    b"What?!",
    b"and so on ...",
    b"one, two,",
    b"<html><head><title>Attention Required.</title></head></html>",
    json.dumps({"detail": "It is over.."}).encode(),
    json.dumps({"detail": "ends with a colon:"}).encode(),
    json.dumps({"detail": f"bad key {KEY}"}).encode(),
    json.dumps({"detail": [{"loc": ["body", "x"], "msg": "Field required."}]}).encode(),
    json.dumps({"detail": ""}).encode(),
)
_DOUBLED = re.compile(r"\.\s?\.(?!\.)(?<!\.\.\.)|[.!?:;,]\s*[:;,]|\s[.,;:]|\(\)|\{\w*\}|  ")


def assert_well_said(error: StashError) -> None:
    for said in (error.problem, error.fix, str(error)):
        found = _DOUBLED.search(said.replace("...", "…"))
        assert found is None, (found, said)
        assert said.endswith((".", "…", "?!")), said
        assert said[0].isupper() or said[0] in "'~" or said.startswith(("stash", "127.")), said
        assert KEY not in said
        assert "/tmp/" not in said


@pytest.mark.parametrize("body", BODIES, ids=range(len(BODIES)))
def test_a_refusal_of_any_status_is_told_in_whole_sentences(body: bytes) -> None:
    for headers in ({}, {"retry-after": "7"}):
        for status in (*range(300, 600), 999):
            answer = Answer(status, httpx2.Headers(headers), body)
            assert_well_said(refused(answer, (KEY,), NOW))


@pytest.mark.parametrize("body", [body for body in BODIES if body[:1] != b"{"])
def test_an_answer_that_is_no_answer_of_stash_is_told_so_too(body: bytes) -> None:
    for kind in ("text/html", "image/png"):
        answer = Answer(200, httpx2.Headers({"content-type": kind}), body)
        with pytest.raises(StashError) as caught:
            read_text(answer, (KEY,))
        assert_well_said(caught.value)


def _failures() -> Iterator[Exception]:
    for kind in FAILURES:
        error = kind.__new__(kind)
        Exception.__init__(error, f"words with {KEY}")
        yield error
    causes = (socket.gaierror(), ConnectionRefusedError(), ssl.SSLError(1, "x"), OSError("none"))
    for cause in causes:
        error = httpx2.ConnectError("words")
        error.__cause__ = cause
        yield error


@pytest.mark.parametrize("proxy", [None, PROXY])
def test_a_failure_on_the_way_is_told_with_the_place_and_its_port(proxy: Proxy | None) -> None:
    for error in _failures():
        ours = translated(error, "Stash.example:8443", proxy)
        assert_well_said(ours)
        assert "Stash.example:8443" in str(ours)


def test_a_proxy_is_named_only_where_the_way_ended_at_it() -> None:
    for kind in (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.ProxyError):
        assert PROXY.place in translated(kind("words"), "h", PROXY).problem
        assert "HTTPS_PROXY" in translated(kind("words"), "h", PROXY).fix
    behind = httpx2.ConnectError("words")
    behind.__cause__ = ssl.SSLError(1, "x")
    for error in (behind, httpx2.ReadTimeout("words"), httpx2.ReadError("words")):
        assert PROXY.place not in str(translated(error, "h", PROXY))


@pytest.mark.parametrize(
    ("scheme", "proxies", "bypassed", "found"),
    [
        ("https", {"https": "http://u:secret@p.example:3128"}, False, "p.example:3128"),
        ("https", {"https": "p.example:3128"}, False, "p.example:3128"),
        ("https", {"https": "http://p.example"}, False, "p.example:80"),
        ("https", {"all": "socks5://p.example"}, False, "p.example:1080"),
        ("https", {"http": "http://p.example:3128"}, False, None),
        ("https", {"https": "http://p.example:3128"}, True, None),
        ("https", {"https": "http://p.example:99999999"}, False, None),
        ("https", {}, False, None),
    ],
)
def test_a_proxy_is_known_by_host_and_port_alone(
    scheme: str, proxies: dict[str, str], bypassed: bool, found: str | None
) -> None:
    proxy = proxy_for(scheme, "stash.example", proxies=proxies, bypassed=bypassed)
    assert (None if proxy is None else proxy.place) == found


def free_port() -> int:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        return int(listening.getsockname()[1])


def failing(base_url: str) -> StashError:
    access = StashAccess(base_url, KEY, "STASH_URL", "STASH_API_KEY")
    with open_client(access, QUICK) as client, pytest.raises(StashUnreachableError) as caught:
        client.formats()
    return caught.value


def test_a_proxy_that_is_down_is_named_without_its_password(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    port = free_port()
    monkeypatch.setenv("HTTPS_PROXY", f"http://ada:pass-word-1@127.0.0.1:{port}")
    error = failing("https://stash.invalid:8443")
    assert f"The proxy at 127.0.0.1:{port}, through which stash.invalid:8443" in error.problem
    assert "pass-word-1" not in str(error)
    assert "ada" not in str(error)
    assert not error.reached


def test_a_host_that_is_down_is_named_with_its_port() -> None:
    port = free_port()
    assert f"127.0.0.1:{port}" in failing(f"http://127.0.0.1:{port}").problem


@pytest.mark.parametrize(
    "url",
    ["ftp://x", "https://", "https://a b", "https://x/?q=1", "http://x:8080", "https://u:p@x"],
)
@pytest.mark.parametrize("source", ["STASH_URL", "~/.stash/config.json"])
def test_an_address_that_is_not_used_is_named_by_where_it_stands(url: str, source: str) -> None:
    with pytest.raises(StashAddressError) as caught:
        address_of(StashAccess(url, KEY, source, "STASH_API_KEY"))
    assert_well_said(caught.value)
    assert "STASH_URL (from STASH_URL)" not in str(caught.value)
    assert source in str(caught.value) or "http://x:8080" in str(caught.value)


def test_a_problem_that_ends_in_the_systems_words_has_one_full_stop() -> None:
    assert StashSkillsError("It failed: Access is denied..", "Do it.").problem.endswith("denied.")
    assert str(StashSkillsError("It goes on...", "Wait.")) == "It goes on... Wait."


@pytest.mark.parametrize(
    ("words", "whole"),
    [
        ("busy", "busy."),
        ("busy.", "busy."),
        ("busy..", "busy."),
        ("so:", "so."),
        ("What?", "What?"),
        ("and ...", "and ..."),
        ("cut…", "cut…"),
    ],
)
def test_somebody_elses_words_end_as_a_sentence(words: str, whole: str) -> None:
    assert sentence(words) == whole
