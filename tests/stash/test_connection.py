"""Where the key goes, what is trusted, and how long anything may take: over real sockets."""

import logging
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from stand_in_stash import KEYS, Odd, StandIn, stand_in
from stand_in_stash.serving import CERTIFICATE
from stand_in_stash.world import GOOD
from support.model_server import free_port

from stash_mcp.errors import (
    StashAddressError,
    StashAnswerError,
    StashError,
    StashKeyError,
    StashTimeoutError,
    StashUnreachableError,
)
from stash_mcp.settings import StashAccess
from stash_mcp.stash import Limits, StashClient, open_client

SHORT = Limits(connect_seconds=2, read_seconds=0.3, total_seconds=0.5, attempts=1)
PATIENT = Limits(attempts=1)
PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY")


def access(url: str, *, allow_http: bool = False) -> StashAccess:
    return StashAccess(url, GOOD, "a test", "a test", allow_http)


def refusal(url: str) -> str:
    with pytest.raises(StashAddressError) as caught:
        open_client(access(url))
    return str(caught.value)


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in PROXIES:
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)


# --- addresses ---


@pytest.mark.parametrize("url", ["http://stash.example", "http://10.0.0.5:8000", "http://0.0.0.0"])
def test_plain_http_to_another_machine_is_refused(url: str) -> None:
    assert "not encrypted" in refusal(url)
    open_client(access(url, allow_http=True)).close()


@pytest.mark.parametrize(
    "url", ["https://stash.example", "http://127.0.0.1:8000/", "http://localhost", "http://[::1]:1"]
)
def test_https_and_loopback_are_taken(url: str) -> None:
    open_client(access(url)).close()


@pytest.mark.parametrize(
    "url",
    ["", "stash.example", "ftp://a", "https://", "https://a:99999999", "https://a b", "file:/a"],
)
def test_what_is_no_address_is_refused(url: str) -> None:
    assert "STASH_URL" in refusal(url)


def test_a_password_or_a_query_in_the_address_is_refused_and_not_shown() -> None:
    words = refusal("https://user:hunter2@stash.example")
    assert "hunter2" not in words
    assert "query" in refusal("https://stash.example/?a=1")


def test_a_base_path_is_kept() -> None:
    client = open_client(access("https://own.example/stash/"))
    assert str(client.address.url("/gepa-runs")) == "https://own.example/stash/api/v1/rm/gepa-runs"


def test_without_a_key_nothing_is_sent(stash: StandIn) -> None:
    with pytest.raises(StashKeyError, match="no key is set"):
        open_client(StashAccess(stash.base_url, None, "a test", "no key is set"))
    assert stash.connections == 0


# --- redirects ---


def moved(location: str, status: int = 307) -> Odd:
    return Odd(status=status, body=b"", headers={"Location": location})


def test_a_redirect_on_the_same_host_is_followed_with_the_key(
    client: StashClient, stash: StandIn
) -> None:
    stash.odd.append(moved("/api/v1/rm/reward-models"))
    assert client.list_runs().rows == ()
    assert [asked.path for asked in stash.asked][-1] == "/api/v1/rm/reward-models"


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_to_another_host_is_refused_and_nothing_goes_there(
    client: StashClient, stash: StandIn, status: int
) -> None:
    elsewhere = stash.storage.base_url
    stash.always = moved(f"{elsewhere}/api/v1/rm/gepa-runs", status)
    with pytest.raises(StashAddressError, match=r"127\.0\.0\.1"):
        client.list_runs()
    assert stash.storage.seen == []
    assert len(stash.asked) == 1


@pytest.mark.parametrize(
    "location",
    ["", "http://[", "//", "https://a b/", "\x00", "javascript:1", "http://:99999/", "//[", "//a@"],
)
def test_a_redirect_to_nowhere_is_a_refusal(
    client: StashClient, stash: StandIn, location: str
) -> None:
    stash.always = moved(location)
    with pytest.raises(StashError):
        client.list_runs()


def test_redirects_without_end_are_refused(client: StashClient, stash: StandIn) -> None:
    stash.always = moved("/api/v1/rm/gepa-runs")
    with pytest.raises(StashAnswerError, match="on and on"):
        client.list_runs()
    assert len(stash.asked) == 4


# --- proxies ---


def test_loopback_does_not_go_through_a_proxy(
    stash: StandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in PROXIES[:3]:
        monkeypatch.setenv(name, f"http://127.0.0.1:{free_port()}")
    with open_client(access(stash.base_url), PATIENT) as client:
        assert client.list_runs().rows == ()


def test_the_environments_proxy_is_used_for_other_hosts(
    stash: StandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", stash.base_url)
    with open_client(access("http://stash.invalid", allow_http=True), PATIENT) as client:
        assert client.list_runs().rows == ()
    assert stash.paths("GET") == ["/api/v1/rm/gepa-runs"]


def test_a_proxy_that_refuses_is_named(stash: StandIn, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTPS_PROXY", stash.base_url)
    with (
        open_client(access("https://stash.invalid"), SHORT) as client,
        pytest.raises(StashUnreachableError, match="proxy"),
    ):
        client.list_runs()


@pytest.mark.parametrize("proxy", ["ftp://a:1", "http://a:b:c", "socks5://127.0.0.1:1"])
def test_an_unusable_proxy_is_a_refusal(monkeypatch: pytest.MonkeyPatch, proxy: str) -> None:
    monkeypatch.setenv("HTTPS_PROXY", proxy)
    with open_client(access("https://stash.invalid"), SHORT) as client, pytest.raises(StashError):
        client.list_runs()


# --- trust ---


@pytest.fixture
def encrypted() -> Iterator[StandIn]:
    with stand_in(tls=True) as running:
        yield running


def test_an_unknown_certificate_is_not_trusted(encrypted: StandIn) -> None:
    with (
        open_client(access(encrypted.base_url), SHORT) as client,
        pytest.raises(StashUnreachableError, match="certificate") as caught,
    ):
        client.list_runs()
    assert "SSL_CERT_FILE" in caught.value.fix
    assert encrypted.asked == []


def test_an_authority_of_ones_own_is_trusted_through_the_environment(
    encrypted: StandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(CERTIFICATE))
    with open_client(access(encrypted.base_url)) as client:
        assert client.list_runs().rows == ()


@pytest.mark.parametrize("content", [None, "no certificate"])
def test_certificates_that_cannot_be_read_are_named(
    encrypted: StandIn, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, content: str | None
) -> None:
    path = tmp_path / "ca.pem"
    if content is not None:
        path.write_text(content)
    monkeypatch.setenv("SSL_CERT_FILE", str(path))
    with (
        open_client(access(encrypted.base_url), SHORT) as client,
        pytest.raises(StashAddressError, match="SSL_CERT_FILE"),
    ):
        client.list_runs()


def test_https_to_a_plain_server_is_no_connection(stash: StandIn) -> None:
    url = stash.base_url.replace("http:", "https:")
    with open_client(access(url), SHORT) as client, pytest.raises(StashUnreachableError):
        client.list_runs()


# --- nothing there ---


def test_a_port_where_nothing_listens_is_told() -> None:
    url = f"http://127.0.0.1:{free_port()}"
    with (
        open_client(access(url), SHORT) as client,
        pytest.raises(StashUnreachableError, match="Nothing listens") as caught,
    ):
        client.list_runs()
    assert not caught.value.reached


def test_a_host_without_an_address_is_told() -> None:
    limits = Limits(connect_seconds=5, total_seconds=10, attempts=1)
    with (
        open_client(access("https://stash.invalid"), limits) as client,
        pytest.raises(StashError, match=r"stash\.invalid") as caught,
    ):
        client.list_runs()
    assert not caught.value.reached


# --- time ---


@pytest.mark.parametrize(
    "odd",
    [
        Odd(hang=True),
        # Each byte comes well within the time for one; only the whole has no end.
        Odd(drip=0.05),
        Odd(drip=0.05, raw=b"HTTP/1.1 200 OK\r\nX-Long: " + b"x" * 1000),
        Odd(drip=0.05, head_at_once=True, body=b"\n" * 999, content_type="application/x-ndjson"),
    ],
    ids=["silence", "a dripped answer", "a dripped head", "a dripped body"],
)
@pytest.mark.parametrize("what", ["list_runs", "export_pairs"])
def test_no_answer_takes_longer_than_the_total_time(stash: StandIn, odd: Odd, what: str) -> None:
    stash.always = odd
    with open_client(access(stash.base_url), SHORT) as client:
        begun = time.monotonic()
        with pytest.raises(StashTimeoutError):
            list(getattr(client, what)())
        assert time.monotonic() - begun < 2 * SHORT.total_seconds + 1


def test_repetitions_stay_within_the_total_time(stash: StandIn) -> None:
    stash.always = Odd(hang=True)
    limits = Limits(read_seconds=0.2, total_seconds=0.5, attempts=100, first_pause_seconds=0)
    with open_client(access(stash.base_url), limits) as client:
        begun = time.monotonic()
        with pytest.raises(StashTimeoutError):
            client.list_runs()
        assert time.monotonic() - begun < 3


def test_closing_ends_a_request_that_another_thread_waits_for(stash: StandIn) -> None:
    stash.always = Odd(hang=True)
    client = open_client(access(stash.base_url), Limits(attempts=1))
    seen: list[StashError] = []

    def ask() -> None:
        try:
            client.list_runs()
        except StashError as error:
            seen.append(error)

    thread = threading.Thread(target=ask)
    thread.start()
    while not stash.asked:
        time.sleep(0.01)
    client.close()
    thread.join(5)
    assert isinstance(seen[0], StashUnreachableError)


def test_many_threads_ask_at_once(client: StashClient, stash: StandIn) -> None:
    found: list[object] = []
    threads = [
        threading.Thread(target=lambda: found.append(client.list_runs().rows)) for _ in range(12)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert found == [()] * 12


# --- size ---


def test_an_answer_that_is_too_large_is_refused(stash: StandIn) -> None:
    stash.always = Odd(body=b" " * 5000)
    with (
        open_client(access(stash.base_url), Limits(answer_bytes=4000)) as client,
        pytest.raises(StashAnswerError, match="larger than 4,000 bytes"),
    ):
        client.list_runs()


def test_a_line_of_an_export_that_is_too_long_is_refused(stash: StandIn) -> None:
    stash.always = Odd(body=b"x" * 5000 + b"\n", content_type="application/x-ndjson")
    with (
        open_client(access(stash.base_url), Limits(answer_bytes=4000)) as client,
        pytest.raises(StashAnswerError, match="5,000 bytes long"),
    ):
        list(client.export_pairs())


# --- what is kept ---


def test_a_cookie_is_not_kept(client: StashClient, stash: StandIn) -> None:
    # A cookie that no header can carry would stop every later request.
    odd = Odd(raw=b"HTTP/1.1 200 OK\r\nSet-Cookie: \xff=\xff\r\nContent-Length: 0\r\n\r\n")
    stash.odd.append(odd)
    with pytest.raises(StashAnswerError):
        client.list_runs()
    assert client.list_runs().rows == ()


# --- what is written down ---


def test_no_log_holds_the_key_or_a_signed_address(
    client: StashClient, stash: StandIn, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    client.list_runs()
    stash.always = Odd(status=401, body=b"{}")
    with pytest.raises(StashKeyError) as caught:
        client.list_runs()
    assert not any(key in caplog.text for key in KEYS)
    assert caught.value.__cause__ is None


def test_a_key_that_a_server_puts_into_an_address_is_not_shown(
    client: StashClient, stash: StandIn
) -> None:
    stash.always = moved(f"https://{stash.key}.example/")
    with pytest.raises(StashAddressError, match="another host") as caught:
        client.list_runs()
    assert stash.key not in str(caught.value)
