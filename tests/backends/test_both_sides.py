"""Which side an id, a caller and the setting choose; and that nothing goes to Stash by itself."""

import dataclasses
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from stand_in_stash import Odd
from stand_in_stash.world import OTHER
from support.staging import Stage, conversation, jsonl
from support.stash_calls import conversations
from support.two_sides import TwoSides, rated_in_stash, trained_at_stash, two_sides

from stash_mcp.backends.base import Backend, RunOrder, TrainOrder
from stash_mcp.backends.both import both_sides, open_backends
from stash_mcp.backends.both.lists import RETRY_SECONDS
from stash_mcp.backends.installations import InstallOrder
from stash_mcp.errors import (
    InputError,
    NotFoundError,
    StashError,
    StashKeyError,
    UnsupportedError,
)
from stash_mcp.settings import StashAccess, load_settings, stash_access


@pytest.fixture
def both(tmp_path: Path) -> Iterator[TwoSides]:
    with two_sides(tmp_path) as opened:
        yield opened


def order(model: str, **fields: object) -> RunOrder:
    return RunOrder(reward_model_id=model, task_model="openai/small", **fields)


# --- what is sent, and when ---


def test_work_on_this_machine_sends_nothing(both: TwoSides) -> None:
    both.stage.conversations()
    both.backend.import_traces(jsonl([conversation("one-more")]))
    both.backend.at("local").import_traces(jsonl([conversation("another")]))
    both.backend.train_reward_model(TrainOrder())
    both.end_training("local")
    [model] = both.backend.at("local").list_reward_models()
    both.backend.start_run(order(model.id))
    both.end_run("local")
    both.backend.reconcile()
    [run] = both.backend.at("local").list_runs()
    both.backend.list_candidates(run.id)
    both.backend.list_installed_skills()
    both.backend.known_runs()
    assert both.stash.asked == []


def test_the_lists_of_both_only_read(both: TwoSides) -> None:
    both.stage.conversations()
    both.backend.list_runs()
    both.backend.list_reward_models()
    assert {asked.method for asked in both.stash.asked} == {"GET"}


def test_a_list_of_stash_that_promises_more_for_ever_comes_to_an_end(both: TwoSides) -> None:
    body = {"traces": [{"id": "t-1", "title": "Order"}], "total": 10**15}
    both.stash.always = Odd(body=json.dumps(body).encode())
    found = both.backend.at("stash").list_traces(limit=5, offset=0, text="order")
    assert [row.id for row in found.traces] == ["stash:t-1"]
    assert len(both.stash.asked) < 10


def test_a_key_that_stash_echoes_in_an_answer_is_masked(both: TwoSides) -> None:
    assert both.key is not None
    run = {
        "id": "r-1",
        "reward_model_id": "m-1",
        "task_model": "a/b",
        "reflection_model": "a/c",
        "max_metric_calls": 40,
        "skill_description": f"of {both.key}",
        "status": "failed",
        "error": f"refused {both.key}",
        "created_at": "2026-01-05T10:00:00+00:00",
    }
    both.stash.always = Odd(body=json.dumps(run).encode())
    shown = both.backend.get_run("stash:r-1").model_dump_json()
    assert "refused [redacted]" in shown
    assert both.key not in shown


def test_without_a_key_stash_is_not_asked_and_nothing_is_missing(tmp_path: Path) -> None:
    with two_sides(tmp_path, has_key=False) as both:
        assert both.backend.list_runs() == []
        assert both.backend.list_reward_models() == []
        assert both.backend.unreached() is None
        assert both.stash.asked == []
        with pytest.raises(StashKeyError):
            both.backend.at("stash").list_traces(limit=1, offset=0)


def test_the_setting_says_where_what_has_no_id_goes(both: TwoSides) -> None:
    settings = dataclasses.replace(both.stage.settings, backend="stash")
    backend = both.open(settings)
    imported = backend.import_traces(conversations(2).encode())
    assert imported.trace_ids[0].startswith("stash:")
    assert backend.list_traces(limit=9, offset=0).total == 2
    assert backend.at("local").list_traces(limit=9, offset=0).total == 0
    assert [line[:12] for line in backend.export_traces()] == ['{"id": "c0",', '{"id": "c1",']
    assert load_settings({"STASH_MCP_BACKEND": "stash"}).backend == "stash"
    assert load_settings({"STASH_MCP_BACKEND": "${STASH_MCP_BACKEND}"}).backend == "local"
    with pytest.raises(InputError, match="STASH_MCP_BACKEND is 'cloud'"):
        load_settings({"STASH_MCP_BACKEND": "cloud"})
    backend.close()


def test_a_training_at_stash_takes_no_conversations_of_this_machine(both: TwoSides) -> None:
    both.stage.conversations()
    ids = rated_in_stash(both)
    asked = len(both.stash.asked)
    for chosen in (both.backend.at("stash"), both.backend.at(None)):
        with pytest.raises(InputError, match="push"):
            chosen.train_reward_model(TrainOrder(trace_ids=("c-00", ids[0])))
    with pytest.raises(InputError, match="push"):
        both.backend.at("stash").train_reward_model(TrainOrder(trace_ids=("c-*",)))
    with pytest.raises(InputError, match="is a pattern"):
        both.backend.train_reward_model(TrainOrder(trace_ids=("stash:*",)))
    assert {known.method for known in both.stash.asked[asked:]} == {"GET"}
    assert both.stash.world.models == {}


def test_work_on_this_machine_takes_nothing_that_lies_in_stash(both: TwoSides) -> None:
    both.stage.conversations()
    with pytest.raises(InputError, match="lies in Stash"):
        both.backend.at("local").train_reward_model(TrainOrder(trace_ids=("stash:x",)))
    with pytest.raises(InputError, match="lies in Stash"):
        both.backend.at("local").start_run(order("stash:x"))
    with pytest.raises(InputError, match="lies in Stash"):
        both.backend.import_traces(jsonl([conversation("stash:x")]))
    with pytest.raises(UnsupportedError, match="of Stash alone"):
        both.backend.train_reward_model(TrainOrder(training_config={"a": 1}))


def test_an_id_of_this_machine_is_unknown_at_stash(both: TwoSides) -> None:
    both.stage.conversations()
    with pytest.raises(NotFoundError, match="begin with 'stash:'"):
        both.backend.at("stash").get_trace("c-00")
    assert both.stash.asked == []


def test_a_library_opened_without_stash_refuses_it(stage: Stage) -> None:
    with pytest.raises(UnsupportedError):
        stage.backend.at("stash")
    assert stage.backend.at("local") is stage.backend.at(None)


# --- both at once ---


def test_the_lists_hold_both_sides_newest_first(both: TwoSides) -> None:
    local = both.stage.finished(("Be polite.", 0.4), ("Ask first.", 0.6))
    model = trained_at_stash(both)
    started = both.backend.start_run(order(model)).run
    # The stand-in's clock is of today, and the library's of a day in January.
    assert [run.id for run in both.backend.list_runs()] == [started.id, local.id]
    assert [run.id for run in both.backend.known_runs()] == [started.id, local.id]
    listed = both.backend.list_reward_models()
    assert [row.id for row in listed] == [model, local.request.reward_model_id]
    assert [row.backend for row in listed] == ["stash", "local"]
    assert [row.id for row in both.backend.at("stash").list_reward_models()] == [model]


def test_an_unreachable_stash_leaves_the_lists_of_this_machine_and_says_so(both: TwoSides) -> None:
    local = both.stage.finished(("Be polite.", 0.4), ("Ask first.", 0.6))
    started = both.backend.start_run(order(trained_at_stash(both))).run
    both.stash.always = Odd(reset=True)
    assert [run.id for run in both.backend.list_runs()] == [started.id, local.id]
    missing = both.backend.unreached()
    assert missing is not None
    assert "Stash could not be asked" in missing
    assert [row.id for row in both.backend.list_reward_models()] == [local.request.reward_model_id]
    asked = len(both.stash.asked)
    both.backend.list_runs()
    assert len(both.stash.asked) == asked, "it is asked again only after a while"
    with pytest.raises(StashError):
        both.backend.at("stash").list_reward_models()
    both.stash.always = None
    both.seconds += RETRY_SECONDS
    assert len(both.backend.list_reward_models()) == 2
    assert both.backend.unreached() is None


def test_unreadable_settings_of_stash_stop_no_work_on_this_machine(both: TwoSides) -> None:
    def broken() -> StashAccess:
        raise InputError("The file is no JSON.", "Correct it.")

    stage = both.stage
    backend = both_sides(stage.settings, stage.open(stage.settings), broken, stage.clock)
    stage.conversations()
    assert backend.list_runs() == []
    assert "The file is no JSON" in str(backend.unreached())
    assert backend.reconcile() == []
    assert backend.list_traces(limit=1, offset=0).total == 12
    with pytest.raises(InputError, match="no JSON"):
        backend.at("stash").list_traces(limit=1, offset=0)


def test_a_broken_file_of_the_stashai_command_is_read_only_when_stash_is_meant(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = stage.settings.user_home / ".stash" / "config.json"
    config.parent.mkdir(parents=True)
    config.write_text("{", encoding="utf-8")
    backend: Backend = open_backends(stage.settings)
    assert backend.list_traces(limit=1, offset=0).total == 0
    assert backend.list_runs() == []
    assert "cannot be read as JSON" in str(backend.unreached())
    with pytest.raises(InputError, match="cannot be read as JSON"):
        stash_access({}, stage.settings.user_home)
    backend.close()


def test_a_person_who_signs_in_meanwhile_is_seen(both: TwoSides) -> None:
    both.key = None
    with pytest.raises(StashKeyError):
        both.backend.at("stash").list_traces(limit=1, offset=0)
    both.key = both.stash.key
    assert both.backend.at("stash").list_traces(limit=1, offset=0).total == 0
    rated_in_stash(both)
    both.key = OTHER
    assert both.backend.at("stash").list_traces(limit=1, offset=0).total == 0


def test_the_origin_of_an_installed_skill_is_told_without_a_network(both: TwoSides) -> None:
    model = trained_at_stash(both)
    run = both.backend.start_run(order(model, install="off")).run
    both.end_run("stash")
    # Started by somebody else, for all that this library knows.
    other = both.open(dataclasses.replace(both.stage.settings, home=both.stage.settings.home / "b"))
    [outcome] = other.install_skill(InstallOrder(run_id=run.id))
    text = Path(outcome.installation.path).read_bytes()
    assert text.decode() == other.list_candidates(run.id)[1].skill
    both.stash.always = Odd(reset=True)
    asked = len(both.stash.asked)
    [row] = other.list_installed_skills()
    assert (row.installation.run_id, row.origin.reward_model_id) == (run.id, model)
    assert (row.origin.score, row.origin.seed_score) == (0.61, 0.52)
    assert row.origin.heldout_gain is None
    # What is over does not change, so it is read without asking too.
    assert other.get_run(run.id).best_candidate == 1
    assert len(both.stash.asked) == asked
    other.close()


def test_a_reward_model_of_stash_is_exported_as_its_archive(both: TwoSides, tmp_path: Path) -> None:
    both.stash.world.weights = both.stash.storage.data = b"\x1f\x8b" + bytes(1000)
    model = trained_at_stash(both)
    written = both.backend.export_reward_model(model, tmp_path / "model.tar.gz")
    assert written.read_bytes() == both.stash.world.weights
    assert [path.name for path in tmp_path.glob(".model*")] == []


def test_annotations_of_stash_are_exported_as_an_import_here_reads_them(both: TwoSides) -> None:
    rated_in_stash(both)
    traces = "\n".join(both.backend.at("stash").export_traces()).encode()
    notes = "\n".join(both.backend.at("stash").export_annotations()).encode()
    report = both.backend.import_traces(traces, annotations=notes)
    assert (report.added, report.annotations_added) == (4, 4)


def test_one_answer_that_looks_at_a_job_several_times_asks_once(both: TwoSides) -> None:
    model = trained_at_stash(both)
    seconds = 0.0
    stage = both.stage
    backend = both_sides(
        stage.settings,
        stage.open(stage.settings),
        both.access,
        stage.clock,
        fresh_seconds=2,
        monotonic=lambda: seconds,
    )
    run = backend.start_run(order(model, install="off")).run
    both.stash.asked.clear()
    backend.get_run(run.id)
    backend.list_candidates(run.id)
    assert both.stash.asked == []
    seconds += 2
    both.end_run("stash")
    assert backend.get_run(run.id).status == "succeeded"
    seconds += 1000
    assert len(backend.list_candidates(run.id)) == 2
    assert len(both.stash.asked) == 1
    backend.get_reward_model(model)
    with pytest.raises(NotFoundError):
        backend.get_run(model)
    assert len(both.stash.asked) == 2, "that it is a reward model is known by then"
    backend.close()
