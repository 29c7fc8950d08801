"""What makes something new is made once, whatever becomes of the answer."""

from datetime import UTC, datetime, timedelta

import pytest
from stand_in_stash import Odd, StandIn
from support.stash_calls import client_of, conversations, trained

from stash_mcp.errors import (
    StashAnswerError,
    StashError,
    StashKeyError,
    StashServerError,
    StashUncertainError,
    StashUnreachableError,
)
from stash_mcp.stash import Limits, StashClient
from stash_mcp.stash.sent import AnnotationChange, AnnotationStart, RunStart, Training

LOST = [
    Odd(after_effect=True, reset=True),
    Odd(after_effect=True, cut=10),
    Odd(after_effect=True, status=502, content_type="text/html", body=b"<html>"),
    Odd(after_effect=True, body=b"{"),
]
NEVER_DONE = [Odd(reset=True), Odd(status=502, content_type="text/html", body=b"<html>")]


def runs(stash: StandIn) -> int:
    return len(stash.world.runs)


@pytest.mark.parametrize("odd", LOST)
def test_a_run_whose_answer_was_lost_is_found_and_not_started_twice(
    client: StashClient, stash: StandIn, odd: Odd
) -> None:
    order = RunStart(reward_model_id=trained(client), max_metric_calls=12)
    stash.odd.append(odd)
    assert client.start_run(order).id in stash.world.runs
    assert runs(stash) == 1


@pytest.mark.parametrize("odd", NEVER_DONE)
def test_a_run_that_was_never_started_is_started_by_the_next_request(
    client: StashClient, stash: StandIn, odd: Odd
) -> None:
    order = RunStart(reward_model_id=trained(client))
    stash.odd.append(odd)
    assert client.start_run(order).id in stash.world.runs
    assert runs(stash) == 1
    assert stash.paths("POST").count("/api/v1/rm/gepa-runs") == 2


def test_an_equal_run_of_before_is_not_taken_for_the_lost_one(
    client: StashClient, stash: StandIn
) -> None:
    moment = datetime(2026, 1, 1, tzinfo=UTC)
    stash.world.clock = lambda: moment
    order = RunStart(reward_model_id=trained(client))
    old = client.start_run(order)
    moment += timedelta(minutes=5)
    stash.odd.append(Odd(reset=True))
    assert client.start_run(order).id != old.id
    assert runs(stash) == 2


def test_another_run_of_the_same_moment_is_not_taken_for_the_lost_one(
    client: StashClient, stash: StandIn
) -> None:
    model = trained(client)
    other = client.start_run(RunStart(reward_model_id=model, max_metric_calls=50))
    stash.odd.append(Odd(reset=True))
    mine = client.start_run(RunStart(reward_model_id=model, max_metric_calls=12))
    assert mine.id != other.id
    assert mine.max_metric_calls == 12


def test_the_servers_own_clock_decides_what_is_new(client: StashClient, stash: StandIn) -> None:
    stash.world.clock = lambda: datetime.now(UTC) - timedelta(days=400)
    order = RunStart(reward_model_id=trained(client))
    stash.odd.append(Odd(after_effect=True, reset=True))
    client.start_run(order)
    assert runs(stash) == 1


def test_a_run_that_may_still_be_under_way_is_not_started_again(stash: StandIn) -> None:
    limits = Limits(read_seconds=0.2, total_seconds=5)
    with client_of(stash, stash.key, limits) as client:
        order = RunStart(reward_model_id=trained(client))
        stash.odd.append(Odd(hang=True))
        with pytest.raises(StashUncertainError, match="not there when looked for") as caught:
            client.start_run(order)
    assert "list the runs" in caught.value.fix
    assert stash.paths("POST").count("/api/v1/rm/gepa-runs") == 1


def test_where_it_cannot_be_looked_for_nothing_is_sent_again(
    client: StashClient, stash: StandIn
) -> None:
    order = RunStart(reward_model_id=trained(client))
    stash.odd.append(Odd(after_effect=True, reset=True))
    stash.always = Odd(status=500, body=b"{}")
    with pytest.raises(StashUncertainError, match="status 500"):
        client.start_run(order)
    assert runs(stash) == 1


def test_two_lost_requests_are_enough(client: StashClient, stash: StandIn) -> None:
    order = RunStart(reward_model_id=trained(client))
    broken = Odd(reset=True)
    stash.odd.extend([broken, None, None, None, broken, None, None, None])
    with pytest.raises(StashUncertainError):
        client.start_run(order)
    assert stash.paths("POST").count("/api/v1/rm/gepa-runs") == 2


def test_a_busy_server_is_asked_again_as_it_did_nothing(
    client: StashClient, stash: StandIn
) -> None:
    order = RunStart(reward_model_id=trained(client))
    before = len(stash.asked)
    stash.odd.append(Odd(status=429, body=b"", headers={"Retry-After": "1"}))
    client.start_run(order)
    assert [asked.method for asked in stash.asked[before:]] == ["POST", "POST"]


def test_a_web_page_for_an_answer_is_told_as_what_it_is(
    client: StashClient, stash: StandIn
) -> None:
    order = RunStart(reward_model_id=trained(client))
    stash.always = Odd(content_type="text/html", body=b"<title>Log in to the hotel</title>")
    with pytest.raises(StashAnswerError, match="Log in to the hotel"):
        client.start_run(order)


@pytest.mark.parametrize("odd", LOST)
def test_a_training_is_started_once(client: StashClient, stash: StandIn, odd: Odd) -> None:
    imported = client.import_traces(conversations(2))
    stash.odd.append(odd)
    model = client.train(Training(name="tone", trace_ids=imported.trace_ids))
    assert list(stash.world.models) == [model.id]


@pytest.mark.parametrize("odd", LOST)
def test_an_annotation_is_added_once(client: StashClient, stash: StandIn, odd: Odd) -> None:
    trace_id = client.import_traces(conversations(1)).trace_ids[0]
    stash.odd.append(odd)
    made = client.annotate(trace_id, AnnotationStart(rating=-1, comment="No."))
    assert list(stash.world.annotations) == [made.id]


def test_an_import_with_ids_is_repeated_and_makes_none_twice(
    client: StashClient, stash: StandIn
) -> None:
    stash.odd.append(Odd(after_effect=True, reset=True))
    assert client.import_traces(conversations(3), repeatable=True).imported == 3
    assert len(stash.world.traces) == 3


def test_an_import_without_ids_is_not_repeated(client: StashClient, stash: StandIn) -> None:
    stash.odd.append(Odd(after_effect=True, reset=True))
    with pytest.raises(StashUncertainError, match="Whether the conversations were stored"):
        client.import_traces(conversations(3))
    assert len(stash.asked) == 1


@pytest.mark.parametrize("odd", LOST)
def test_a_change_and_a_deletion_are_repeated(
    client: StashClient, stash: StandIn, odd: Odd
) -> None:
    trace_id = client.import_traces(conversations(1)).trace_ids[0]
    made = client.annotate(trace_id, AnnotationStart(rating=1))
    stash.odd.append(odd)
    changed = client.change_annotation(made.id, AnnotationChange(rating=-1))
    assert (changed.id, changed.rating) == (made.id, -1)
    assert len(stash.paths("PATCH")) == 2
    stash.odd.append(Odd(after_effect=True, reset=True))
    client.delete_annotation(made.id)
    assert len(stash.paths("DELETE")) == 2
    assert stash.world.annotations == {}


def test_a_deletion_of_what_is_not_there_is_told(client: StashClient, stash: StandIn) -> None:
    with pytest.raises(StashError, match="not found"):
        client.delete_trace("00000000-0000-4000-8000-000000000000")


def test_an_export_that_breaks_off_is_told(client: StashClient, stash: StandIn) -> None:
    client.import_traces(conversations(100))
    stash.odd.append(Odd(cut=2000))
    with pytest.raises((StashUnreachableError, StashAnswerError)):
        list(client.export_traces())


@pytest.mark.parametrize(
    "odd", [Odd(status=503, body=b"{}"), Odd(reset=True)], ids=["unavailable", "reset"]
)
def test_an_export_that_has_not_begun_is_asked_for_again(
    client: StashClient, stash: StandIn, pauses: list[float], odd: Odd
) -> None:
    client.import_traces(conversations(3))
    stash.odd.extend([odd, odd])
    assert len(list(client.export_traces())) == 3
    assert len(stash.paths("GET")) == 3
    assert 0 < pauses[0] <= Limits().first_pause_seconds < pauses[1] * 2


@pytest.mark.parametrize("status", [429, 503])
def test_an_export_waits_as_long_as_stash_asks(
    client: StashClient, stash: StandIn, pauses: list[float], status: int
) -> None:
    client.import_traces(conversations(3))
    stash.odd.append(Odd(status=status, body=b"{}", headers={"Retry-After": "1"}))
    assert len(list(client.export_traces())) == 3
    assert pauses == [1.0]


def test_an_export_that_broke_off_or_is_not_allowed_is_not_asked_for_again(
    client: StashClient, stash: StandIn, pauses: list[float]
) -> None:
    client.import_traces(conversations(100))
    stash.odd.append(Odd(cut=2000))
    with pytest.raises(StashError) as caught:
        list(client.export_traces())
    assert caught.value.begun
    stash.odd.append(Odd(status=401, body=b'{"detail": "Invalid API key"}'))
    with pytest.raises(StashKeyError) as refused:
        list(client.export_traces())
    assert not refused.value.begun
    assert (len(stash.paths("GET")), pauses) == (2, [])


def test_an_export_that_never_begins_is_given_up_after_the_usual_attempts(
    client: StashClient, stash: StandIn
) -> None:
    stash.always = Odd(status=503, body=b"{}")
    with pytest.raises(StashServerError) as caught:
        list(client.export_traces())
    assert caught.value.passing
    assert not caught.value.begun
    assert len(stash.paths("GET")) == Limits().attempts


def test_an_export_that_ends_within_a_line_is_told(client: StashClient, stash: StandIn) -> None:
    stash.odd.append(Odd(body=b'{"id": "a"}\n{"id', content_type="application/x-ndjson"))
    with pytest.raises(StashAnswerError, match="within a line"):
        list(client.export_traces())


def test_errors_that_pass_are_marked_for_whoever_asks_later(
    client: StashClient, stash: StandIn
) -> None:
    stash.always = Odd(status=503, body=b"{}")
    with pytest.raises(StashServerError) as caught:
        client.list_runs()
    assert caught.value.passing
