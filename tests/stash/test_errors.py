"""Every way in which Stash, or what stands before it, can refuse: a typed error that says what to
do, and never a key.
"""

import inspect
import json
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import httpx2
import pytest
from stand_in_stash import Odd, StandIn
from stand_in_stash.world import EXPIRED, PLAIN, READER
from support.stash_calls import client_of, conversations

from stash_mcp.errors import (
    InputError,
    NotFoundError,
    StashAnswerError,
    StashError,
    StashFeatureError,
    StashKeyError,
    StashNotFoundError,
    StashRateLimitError,
    StashRejectedError,
    StashServerError,
)
from stash_mcp.stash import StashClient
from stash_mcp.stash.connection import Answer
from stash_mcp.stash.failures import failure_of, translated
from stash_mcp.stash.refusals import REFUSALS, refused

NOW = datetime(2026, 11, 1, tzinfo=UTC)
PAGE = b"<!DOCTYPE html>\n<html><head><title>Attention Required!</title></head></html>"


def error_of(client: StashClient) -> StashError:
    with pytest.raises(StashError) as caught:
        client.list_runs()
    return caught.value


# --- keys and accounts ---


@pytest.mark.parametrize(("key", "words"), [(EXPIRED, "Token expired"), ("mc_no", "Invalid API")])
def test_a_key_that_is_not_accepted_says_why_and_what_to_do(
    stash: StandIn, key: str, words: str
) -> None:
    with client_of(stash, key) as client:
        error = error_of(client)
    assert isinstance(error, StashKeyError)
    assert words in error.problem
    assert "STASH_API_KEY" in error.fix
    assert len(stash.asked) == 1


def test_a_read_only_key_reads_and_is_refused_a_write(stash: StandIn) -> None:
    with client_of(stash, READER) as client:
        assert client.list_runs().rows == ()
        with pytest.raises(StashKeyError, match="read-only"):
            client.import_traces(conversations(1))


def test_an_account_without_the_feature_is_told_so(stash: StandIn) -> None:
    with client_of(stash, PLAIN) as client:
        error = error_of(client)
    assert isinstance(error, StashFeatureError)
    assert not isinstance(error, NotFoundError)


# --- what stands before Stash ---


def html(status: int) -> Odd:
    return Odd(status=status, content_type="text/html", body=PAGE)


def test_a_gateways_page_is_not_taken_for_a_read_only_key(
    client: StashClient, stash: StandIn
) -> None:
    stash.always = html(403)
    error = error_of(client)
    assert isinstance(error, StashServerError)
    assert "403" in error.problem
    assert "Attention Required!" in error.problem
    assert "<" not in error.problem


def test_a_web_site_in_place_of_the_api_is_recognised(client: StashClient, stash: StandIn) -> None:
    stash.always = html(200)
    error = error_of(client)
    assert isinstance(error, StashAnswerError)
    assert "STASH_URL" in error.fix


@pytest.mark.parametrize("answer", [html(404), Odd(status=404, body=b'{"detail": "Not Found"}')])
def test_an_address_without_such_a_path_is_no_unknown_id(
    client: StashClient, stash: StandIn, answer: Odd
) -> None:
    stash.always = answer
    error = error_of(client)
    assert isinstance(error, StashAnswerError)
    assert "STASH_URL" in error.fix


# --- statuses ---


def test_each_status_that_is_no_success_has_its_error() -> None:
    for status in [*range(100, 200), *range(300, 600), 999]:
        answer = Answer(status, httpx2.Headers(), b"")
        error = refused(answer, (), NOW)
        assert type(error) is not StashError
        assert error.problem.endswith((".", "!", "?", ")"))
        assert error.fix.endswith(".")


def test_the_table_has_no_row_that_never_decides() -> None:
    samples = [
        (401, {"detail": "Invalid API key"}),
        (403, None),
        (403, {"detail": "read-only"}),
        (404, {"detail": "Reward models are not enabled for this account"}),
        (404, {"detail": "Not Found"}),
        (404, {"detail": "Trace not found"}),
        (409, {"detail": "busy"}),
        (413, None),
        (422, {"detail": [{"loc": ["body", "skill_name"], "msg": "Field required"}]}),
        (422, {"detail": "Reward model has not finished training"}),
        (422, {"detail": [{"loc": ["path", "run_id"], "msg": "not a UUID"}]}),
        (422, {"detail": [{"loc": ["body", "name"], "msg": "Field required"}]}),
        (429, None),
        (500, None),
        (503, None),
        (408, None),
        (418, None),
        (302, None),
    ]
    found = []
    for status, body in samples:
        data = b"" if body is None else json.dumps(body).encode()
        error = refused(Answer(status, httpx2.Headers(), data), (), NOW)
        found.append((type(error), error.fix.partition("{")[0]))
    assert len(samples) == len(REFUSALS)
    assert [kind for kind, _ in found] == [row.kind for row in REFUSALS]


def test_validation_names_the_fields(client: StashClient, stash: StandIn) -> None:
    with pytest.raises(StashRejectedError, match=r"query\.limit: .*500") as caught:
        client.list_traces(limit=501)
    assert isinstance(caught.value, InputError)


def test_an_unknown_id_is_a_not_found_error_as_it_is_on_this_machine(client: StashClient) -> None:
    with pytest.raises(StashNotFoundError) as caught:
        client.get_trace("00000000-0000-4000-8000-000000000000")
    assert isinstance(caught.value, NotFoundError)
    assert caught.value.code == NotFoundError.code


# --- what a person is shown ---


def test_a_key_that_comes_back_in_an_answer_is_masked(client: StashClient, stash: StandIn) -> None:
    for body in (
        json.dumps({"detail": f"bad key {stash.key}"}).encode(),
        json.dumps({"detail": [{"loc": [stash.key], "msg": stash.key}]}).encode(),
        stash.key.encode(),
    ):
        stash.always = Odd(status=400, body=body)
        assert stash.key not in str(error_of(client))
    stash.always = Odd(body=f"{stash.key}".encode(), content_type="text/plain")
    assert stash.key not in str(error_of(client))


def test_foreign_words_are_one_short_printable_line(client: StashClient, stash: StandIn) -> None:
    words = "\x1b[2Jone\r\ntwo\u202e" + "x" * 5000
    stash.always = Odd(status=400, body=json.dumps({"detail": words}).encode())
    problem = error_of(client).problem
    assert len(problem) < 500
    assert problem.isprintable()


# --- waiting and repeating ---


def test_what_passes_is_asked_again_with_growing_pauses(
    client: StashClient, stash: StandIn, pauses: list[float]
) -> None:
    stash.odd.extend([Odd(status=503, body=b"busy"), Odd(reset=True), html(502)])
    assert client.list_runs().rows == ()
    assert len(stash.asked) == 4
    for pause, longest in zip(pauses, (0.5, 1, 2), strict=True):
        assert longest / 2 <= pause <= longest


def test_what_stays_is_told_after_a_bounded_number_of_attempts(
    client: StashClient, stash: StandIn
) -> None:
    stash.always = Odd(status=500, body=b'{"detail": "Reward model has no stored checkpoint"}')
    assert "no stored checkpoint" in error_of(client).problem
    assert len(stash.asked) == client.sender.connection.limits.attempts


def test_retry_after_is_kept_to_in_seconds_and_as_a_date(
    client: StashClient, stash: StandIn, pauses: list[float]
) -> None:
    date = format_datetime(datetime.now(UTC) + timedelta(seconds=8), usegmt=True)
    stash.odd.append(Odd(status=429, body=b"", headers={"Retry-After": "3"}))
    stash.odd.append(Odd(status=503, body=b"", headers={"Retry-After": date}))
    assert client.list_runs().rows == ()
    assert pauses[0] == 3
    assert 5 < pauses[1] <= 8


@pytest.mark.parametrize("wait", ["3600", "999999999999999999999"])
def test_a_long_wait_is_told_and_not_waited_for(
    client: StashClient, stash: StandIn, pauses: list[float], wait: str
) -> None:
    stash.always = Odd(status=429, body=b"", headers={"Retry-After": wait})
    error = error_of(client)
    assert isinstance(error, StashRateLimitError)
    assert f"{wait[:4]}" in error.fix
    assert pauses == []


@pytest.mark.parametrize("wait", ["soon", "-5", "Thu, 99 Foo 2026", "1e9", "٣"])
def test_a_wait_that_is_none_is_ignored(
    client: StashClient, stash: StandIn, pauses: list[float], wait: str
) -> None:
    stash.odd.append(Odd(status=429, body=b"", headers={"Retry-After": wait}))
    assert client.list_runs().rows == ()
    assert pauses[0] <= 0.5


# --- the HTTP library's exceptions ---


def _exceptions() -> list[type[Exception]]:
    named = [value for _, value in inspect.getmembers(httpx2, inspect.isclass)]
    # Of the library's own tree, but for what only its callers can cause.
    causes = ("CookieConflict",)
    return [
        kind
        for kind in named
        if issubclass(kind, Exception)
        and not issubclass(kind, Warning)
        and kind.__name__ not in causes
    ]


@pytest.mark.parametrize("kind", _exceptions(), ids=lambda kind: kind.__name__)
def test_no_exception_of_the_http_library_is_unmapped(kind: type[Exception]) -> None:
    error = kind.__new__(kind)
    Exception.__init__(error, "words of the library")
    ours = translated(error, "stash.example")
    assert type(ours) is not StashError
    assert "words of the library" not in str(ours)
    assert "{" not in str(ours)
    assert ours.fix.endswith(".")
    assert failure_of(error).kind is type(ours)


def test_the_walk_over_the_library_finds_its_exceptions() -> None:
    names = {kind.__name__ for kind in _exceptions()}
    assert {"ConnectTimeout", "ReadError", "RemoteProtocolError", "InvalidURL"} <= names
    assert len(names) > 20
