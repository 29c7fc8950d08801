"""One odd row of a list of Stash never keeps the others from being read, and is told by name."""

import contextlib
import json
import tracemalloc
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx2
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from stand_in_stash import Odd, StandIn, stand_in
from support.spoiled import HALF, RAW, dumped, one, put, spoiled
from support.stash_calls import client_of, conversations, trained

from stash_mcp.errors import StashAnswerError, StashMisfitError, StashUncertainError
from stash_mcp.stash import StashClient
from stash_mcp.stash.connection import Stream
from stash_mcp.stash.lines import lines
from stash_mcp.stash.sent import AnnotationStart, RunStart, Training
from stash_mcp.stash.shapes import Unread

ROWS = 3


@dataclass(frozen=True)
class Holder:
    """An answer with rows: its right value, where they are in it, and how it is read."""

    right: Any
    rows: Callable[[Any], list[Any]]
    read: Callable[[StashClient], tuple[tuple[Any, ...], tuple[Unread, ...]]]


@dataclass(frozen=True)
class Scene:
    stash: StandIn
    client: StashClient
    holders: dict[str, Holder]


@pytest.fixture(scope="module")
def scene() -> Iterator[Scene]:
    with stand_in() as stash, client_of(stash, stash.key) as client:
        model = trained(client)
        trace = client.list_traces().traces[0].id
        for number in range(ROWS):
            client.start_run(RunStart(reward_model_id=model, max_metric_calls=10 + number))
            client.annotate(trace, AnnotationStart(comment=f"No. {number}."))
        for number in range(ROWS - 1):
            client.train(Training(name=f"m{number}", trace_ids=(trace,)))
        yield Scene(stash, client, dict(_holders(stash, client, trace)))


def _holders(stash: StandIn, client: StashClient, trace: str) -> Iterator[tuple[str, Holder]]:
    def bare(value: Any) -> Any:
        return value

    for name, path, rows, read in (
        ("runs", "/gepa-runs", bare, lambda c: (c.list_runs().rows, c.list_runs().unread)),
        (
            "models",
            "/reward-models",
            bare,
            lambda c: (c.list_reward_models().rows, c.list_reward_models().unread),
        ),
        (
            "traces",
            "/traces",
            lambda value: value["traces"],
            lambda c: (c.list_traces().traces, c.list_traces().unread),
        ),
        (
            "annotations",
            f"/traces/{trace}",
            lambda value: value["annotations"],
            lambda c: (c.get_trace(trace).annotations, c.get_trace(trace).unread),
        ),
    ):
        seen: list[Any] = []
        with spoiled(stash, path, lambda value, seen=seen: seen.append(value) or value):
            read(client)
        yield name, Holder(seen[-1], rows, read)


HOLDERS = ["runs", "models", "traces", "annotations"]
SPOILS: dict[str, Callable[[dict[str, Any]], object]] = {
    "null": lambda row: None,
    "text": lambda row: "junk",
    "list": lambda row: [row],
    "number": put(id=17),
    "path": put(id="../../etc"),
    "naive": put(created_at="2026-01-01T00:00:00"),
    "edge of time": put(created_at="0001-01-01T00:00:00+14:00"),
    "surrogate": put(title="\ud800", error="\udfff", comment="\ud83d"),
    "half byte": put(id=f"a{HALF}"),
    "long number": put(id=f"{RAW}{'9' * 5000}"),
    "deep": put(created_at=f"{RAW}{'[' * 500}{']' * 500}"),
}


def told(scene: Scene, name: str, number: int, row: object) -> tuple[list[str], tuple[Unread, ...]]:
    """Ids of the rows that were read where `row` is in the place of row `number`."""
    holder = scene.holders[name]
    value = json.loads(json.dumps(holder.right))
    holder.rows(value)[number] = row
    scene.stash.always = Odd(body=dumped(value))
    try:
        read, unread = holder.read(scene.client)
    finally:
        scene.stash.always = None
    return [row.id for row in read], unread


def right_rows(scene: Scene, name: str) -> list[Any]:
    holder = scene.holders[name]
    return holder.rows(holder.right)


@pytest.mark.parametrize("name", HOLDERS)
@pytest.mark.parametrize("spoil", SPOILS)
def test_a_row_that_does_not_fit_is_told_and_the_others_are_there(
    scene: Scene, name: str, spoil: str
) -> None:
    rows = right_rows(scene, name)
    assert len(rows) >= ROWS
    read, [unread] = told(scene, name, 1, SPOILS[spoil](rows[1]))
    assert read == [row["id"] for row in [*rows[:1], *rows[2:]]]
    assert unread.why
    if spoil in ("naive", "edge of time", "surrogate", "deep"):
        assert unread.id == rows[1]["id"]


JUNK = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=5,
)


@settings(max_examples=120, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_whatever_one_row_is_the_others_are_read(scene: Scene, data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(HOLDERS))
    rows = right_rows(scene, name)
    number = data.draw(st.integers(0, len(rows) - 1))
    key = data.draw(st.sampled_from(sorted(rows[number])))
    row = data.draw(st.just({**rows[number], key: data.draw(JUNK)}) | JUNK)
    read, unread = told(scene, name, number, row)
    others = [known["id"] for known in [*rows[:number], *rows[number + 1 :]]]
    assert [id for id in read if id in others] == others
    assert len(read) + len(unread) == len(rows)


def test_a_state_that_is_not_known_is_named(scene: Scene) -> None:
    rows = right_rows(scene, "runs")
    _, [unread] = told(scene, "runs", 0, {**rows[0], "status": "cancelled"})
    assert "'cancelled' is a state that this version of stash-skills does not know" in unread.why
    id = rows[0]["id"]
    with (
        spoiled(scene.stash, id, put(status="cancelled")),
        pytest.raises(StashMisfitError, match="'cancelled' is a state that this version"),
    ):
        scene.client.get_run(id)


def test_what_is_lost_by_no_null_is_read(scene: Scene) -> None:
    rows = right_rows(scene, "models")
    read, unread = told(scene, "models", 0, {**rows[0], "metrics": [1, 2]})
    assert (len(read), unread) == (len(rows), ())
    rows = right_rows(scene, "annotations")
    quote = {"text": "Order", "prefix": None, "suffix": None}
    read, unread = told(scene, "annotations", 0, {**rows[0], "quote": quote})
    assert (len(read), unread) == (len(rows), ())


@pytest.mark.parametrize("body", [b"{", b"[]]", b'{"traces": [', b'[{"id": "a"'])
def test_a_broken_answer_is_an_error_and_no_row(scene: Scene, body: bytes) -> None:
    scene.stash.always = Odd(body=body)
    with contextlib.ExitStack() as stack:
        stack.callback(setattr, scene.stash, "always", None)
        with pytest.raises(StashAnswerError, match="not whole JSON") as caught:
            scene.client.list_traces()
    assert caught.value.passing


# --- what is started once ---

ODD_RUN = put(status="cancelled")


def all_rows(change: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda rows: [change(row) for row in rows]


def test_a_run_that_may_be_the_lost_one_and_cannot_be_read_is_not_paid_for_twice(
    client: StashClient, stash: StandIn
) -> None:
    order = RunStart(reward_model_id=trained(client))
    stash.odd.append(Odd(after_effect=True, reset=True))
    with (
        spoiled(stash, "/gepa-runs", all_rows(ODD_RUN)),
        pytest.raises(StashUncertainError, match=r"cannot be read .*cancelled") as caught,
    ):
        client.start_run(order)
    [made] = stash.world.runs
    assert made in str(caught.value)
    assert stash.paths("POST").count("/api/v1/rm/gepa-runs") == 1


def test_a_run_whose_own_answer_cannot_be_read_is_not_started_again(
    client: StashClient, stash: StandIn
) -> None:
    order = RunStart(reward_model_id=trained(client))
    stash.odd.append(Odd(after_effect=True, body=b'{"id": "r", "status": "cancelled"}'))
    with (
        spoiled(stash, "/gepa-runs", all_rows(put(created_at=None))),
        pytest.raises(StashUncertainError),
    ):
        client.start_run(order)
    assert len(stash.world.runs) == 1


def test_a_training_and_an_annotation_that_may_be_the_lost_one_are_not_made_twice(
    client: StashClient, stash: StandIn
) -> None:
    [trace] = client.import_traces(conversations(1)).trace_ids
    stash.odd.append(Odd(after_effect=True, reset=True))
    with (
        spoiled(stash, "/reward-models", all_rows(put(epochs=None))),
        pytest.raises(StashUncertainError, match="epochs"),
    ):
        client.train(Training(name="tone", trace_ids=(trace,)))
    stash.odd.append(Odd(after_effect=True, reset=True))

    def odd_notes(value: Any) -> Any:
        return {**value, "annotations": [{**row, "rating": 0} for row in value["annotations"]]}

    with spoiled(stash, trace, odd_notes), pytest.raises(StashUncertainError, match="rating"):
        client.annotate(trace, AnnotationStart(rating=1))
    assert (len(stash.world.models), len(stash.world.annotations)) == (1, 1)


def test_an_odd_run_of_before_keeps_nothing_from_being_started(
    client: StashClient, stash: StandIn
) -> None:
    moment = datetime(2026, 1, 1, tzinfo=UTC)
    stash.world.clock = lambda: moment
    order = RunStart(reward_model_id=trained(client))
    old = client.start_run(order).id
    moment += timedelta(minutes=5)
    stash.odd.append(Odd(reset=True))
    with spoiled(stash, "/gepa-runs", all_rows(one(old, ODD_RUN))):
        assert client.start_run(order).id != old
    assert len(stash.world.runs) == 2


# --- exports ---

NDJSON = "application/x-ndjson"


def exported(stash: StandIn, *rows: bytes) -> None:
    stash.odd.append(Odd(body=b"".join(row + b"\n" for row in rows), content_type=NDJSON))


def test_lines_that_cannot_be_read_are_told_and_the_others_come(
    client: StashClient, stash: StandIn
) -> None:
    odd: list[Unread] = []
    exported(stash, b'\xef\xbb\xbf{"a": 1}', b"\xff\xfe", b"", b'{"b": 2}')
    assert list(client.export_traces(odd.append)) == ['{"a": 1}', '{"b": 2}']
    assert [row.why for row in odd] == ["a line of its export is not UTF-8 text"]


ANNOTATION = {"trace_id": "t1", "comment": "Fine.", "created_at": "2026-01-01T00:00:00Z"}


@pytest.mark.parametrize(
    "row",
    [
        b"{",
        b"17",
        dumped({**ANNOTATION, "rating": 0}),
        dumped({**ANNOTATION, "comment": "\ud800"}),
        dumped({**ANNOTATION, "created_at": "2026-01-01"}),
        dumped({**ANNOTATION, "quote": {"text": None}}),
        b"[" * 5000,
    ],
)
def test_an_odd_annotation_of_an_export_is_told(
    client: StashClient, stash: StandIn, row: bytes
) -> None:
    odd: list[Unread] = []
    sound = dumped(ANNOTATION)
    exported(stash, b"\xef\xbb\xbf" + sound, row, sound)
    assert len(list(client.export_annotations(odd.append))) == 2
    assert [told.trace_id for told in odd] == ["t1" if row.startswith(b'{"') else None]


def test_without_somebody_to_tell_odd_lines_are_an_error_at_the_end(
    client: StashClient, stash: StandIn
) -> None:
    exported(stash, b"\xff", b"{}", b"\xff")
    came: list[str] = []
    with pytest.raises(StashMisfitError, match="2 exported lines of Stash could not be read"):
        came.extend(client.export_pairs())
    assert came == ["{}"]


@pytest.mark.parametrize("call", ["export_traces", "export_pairs", "export_annotations"])
def test_the_key_is_masked_in_an_export(client: StashClient, stash: StandIn, call: str) -> None:
    exported(stash, dumped({**ANNOTATION, "comment": f"It is {stash.key}!"}))
    [line] = getattr(client, call)()
    assert "It is " in str(line)
    assert stash.key not in str(line)


def test_a_line_that_is_too_long_is_not_held() -> None:
    def chunks() -> Iterator[bytes]:
        yield b'{"a": 1}\n"'
        for _ in range(1000):
            yield b"x" * 70_000
        yield b'"\n{"b": 2}\n'

    odd: list[Unread] = []
    stream = Stream(200, httpx2.Headers({"content-type": NDJSON}), chunks(), b"")
    tracemalloc.start()
    found = list(lines(stream, 1_000_000, odd.append, ()))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert found == ['{"a": 1}', '{"b": 2}']
    assert odd[0].why == "a line of its export is 70,000,002 bytes long"
    assert peak < 5_000_000
