"""One odd run, reward model, conversation or comment of Stash hides no other from the tools."""

from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from support.spoiled import one, put, spoiled
from support.two_sides import TwoSides, rated_in_stash, trained_at_stash, two_sides

from stash_mcp.backends.base import RunOrder, TrainOrder
from stash_mcp.backends.ids import raw
from stash_mcp.errors import StashMisfitError
from stash_mcp.models import Run
from stash_mcp.server.results import TraceList, TraceView
from stash_mcp.server.trace_text import trace_text

RUNS, MODELS, TRACES = "/gepa-runs", "/reward-models", "/rm/traces"


@pytest.fixture
def both(tmp_path: Path) -> Iterator[TwoSides]:
    with two_sides(tmp_path) as opened:
        yield opened


def start(both: TwoSides, model: str, name: str) -> Run:
    return both.backend.start_run(RunOrder(reward_model_id=model, task_model=name)).run


def all_rows(change: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda rows: [change(row) for row in rows]


def the_row(id: str, **fields: object) -> Callable[[Any], Any]:
    return all_rows(one(raw(id), put(**fields)))


@pytest.mark.parametrize(
    "fields",
    [{"status": "cancelled"}, {"created_at": "2026-01-01T00:00:00"}, {"max_metric_calls": None}],
)
def test_a_list_of_runs_has_the_sound_ones_and_names_the_other(
    both: TwoSides, fields: dict[str, object]
) -> None:
    model = trained_at_stash(both)
    odd, sound = start(both, model, "openai/a"), start(both, model, "openai/b")
    other = both.open(both.stage.settings)
    with spoiled(both.stash, RUNS, the_row(odd.id, **fields)):
        at_stash = both.backend.at("stash")
        assert [run.id for run in at_stash.list_runs()] == [sound.id]
        assert f"1 run of Stash could not be read and is left out ({odd.id}: " in (
            at_stash.unreached() or ""
        )
        # As it was last seen, which this library knows.
        assert {run.id for run in other.list_runs()} == {odd.id, sound.id}
        assert next(iter(fields)) in (other.unreached() or "")
    assert len(other.list_runs()) == 2
    assert other.unreached() is None
    other.close()


def test_a_list_of_reward_models_names_the_odd_one(both: TwoSides) -> None:
    odd = trained_at_stash(both)
    sound = both.backend.at("stash").train_reward_model(TrainOrder()).id
    with spoiled(both.stash, MODELS, the_row(odd, epochs=None)):
        assert [model.id for model in both.backend.list_reward_models()] == [sound]
        assert f"{odd}: `epochs`" in (both.backend.unreached() or "")
    with spoiled(both.stash, MODELS, the_row(odd, metrics=["a"])):
        assert len(both.backend.list_reward_models()) == 2
        assert both.backend.unreached() is None


def test_an_odd_run_keeps_no_other_from_being_started_or_found(both: TwoSides) -> None:
    model = trained_at_stash(both)
    odd, under_way = start(both, model, "openai/a"), start(both, model, "openai/b")
    with spoiled(both.stash, RUNS, the_row(odd.id, status="paused")):
        order = RunOrder(reward_model_id=model, task_model="openai/b")
        again = both.backend.start_run(order)
        assert (again.run.id, again.existing) == (under_way.id, True)
        assert start(both, model, "openai/c").id not in (odd.id, under_way.id)
    assert len(both.stash.world.runs) == 3


def test_a_list_of_conversations_names_the_odd_one_and_a_training_takes_it(
    both: TwoSides,
) -> None:
    ids = rated_in_stash(both)

    def odd_row(page: Any) -> Any:
        return {**page, "traces": the_row(ids[1], step_count=None)(page["traces"])}

    with spoiled(both.stash, TRACES, odd_row):
        side = both.backend.at("stash")
        for asked in ({}, {"text": "Order"}):
            page = side.list_traces(limit=10, offset=0, **asked)
            assert {row.id for row in page.traces} == {*ids} - {ids[1]}
            assert f"{ids[1]}: `step_count`" in (page.missing or "")
        shown = TraceList.of(side.list_traces(limit=10, offset=0), 0)
        assert (shown.next_offset, len(shown.traces)) == (None, len(ids) - 1)
        first = TraceList.of(side.list_traces(limit=3, offset=0), 0)
        assert first.next_offset == 3
        side.train_reward_model(TrainOrder())
    [model] = both.stash.world.models.values()
    assert sorted(model.given["trace_ids"]) == sorted(map(raw, ids))


def test_a_conversation_is_shown_without_its_odd_comment_and_says_so(both: TwoSides) -> None:
    ids = rated_in_stash(both)

    def odd_note(row: Any) -> Any:
        return {**row, "annotations": [put(rating=0)(note) for note in row["annotations"]]}

    with spoiled(both.stash, raw(ids[0]), odd_note):
        detail = both.backend.get_trace(ids[0])
    assert (len(detail.trace.steps), detail.annotations) == (2, ())
    assert "1 annotation of Stash could not be read" in (detail.missing or "")
    assert TraceView.of(detail, 0, 500).missing == detail.missing
    assert (detail.missing or "") in trace_text(detail)


def test_one_misshapen_run_does_not_keep_the_others_from_being_followed(both: TwoSides) -> None:
    model = trained_at_stash(both)
    runs = [start(both, model, f"openai/{number}") for number in range(3)]
    both.end_run("stash")
    both.stage.now += timedelta(seconds=10)
    with spoiled(both.stash, raw(runs[0].id), put(status="cancelled")):
        assert {notice.run_id for notice in both.backend.reconcile()} == {
            runs[1].id,
            runs[2].id,
        }
        asked = len(both.stash.asked)
        both.stage.now += timedelta(seconds=300)
        both.backend.reconcile()
        assert len(both.stash.asked) == asked, "it seldom changes by itself"
        with pytest.raises(StashMisfitError, match="'cancelled' is a state"):
            both.backend.get_run(runs[0].id)
    both.stage.now += timedelta(seconds=600)
    assert [notice.run_id for notice in both.backend.reconcile()] == [runs[0].id]


def test_a_candidate_without_a_score_shifts_no_number(both: TwoSides) -> None:
    run = start(both, trained_at_stash(both), "openai/a")
    both.end_run("stash")

    def candidates(row: Any) -> Any:
        seed, best = row["candidates"]
        odd = [{"skill": "x", "score": None}, {"skill": None, "score": 0.3}, "junk", None]
        return {**row, "candidates": [{**seed, "score": None}, *odd, {**best, "score": "NaN"}]}

    with spoiled(both.stash, raw(run.id), candidates):
        shown = both.backend.list_candidates(run.id)
        assert [(row.number, row.score) for row in shown] == [(0, 0.52), (5, 0.61)]
        assert both.backend.get_run(run.id).best_candidate == 5
