"""Runs at Stash: started once, shown and installed as of the Stash that they are of."""

import contextlib
import json
import threading
from collections.abc import Iterator
from datetime import UTC
from pathlib import Path

import pytest
from stand_in_stash import Odd, stand_in
from support.two_sides import TwoSides, trained_at_stash, two_sides

from stash_mcp.backends.base import RunOrder, StartedRun
from stash_mcp.backends.both import Backends
from stash_mcp.backends.installations import InstallOrder
from stash_mcp.errors import LibraryBusyError, StashAnswerError, StashNotFoundError
from stash_mcp.server.run_results import StartResult
from stash_mcp.stash import StashClient
from stash_mcp.storage.files import try_lock


@pytest.fixture
def both(tmp_path: Path) -> Iterator[TwoSides]:
    with two_sides(tmp_path) as opened:
        yield opened


def order(model: str, **fields: object) -> RunOrder:
    return RunOrder(reward_model_id=model, task_model="openai/small", **fields)


def skill_file(both: TwoSides) -> Path:
    project = both.stage.settings.project_dir
    return project / ".claude" / "skills" / "reviewers-advice" / "SKILL.md"


def told(both: TwoSides, **results: object) -> None:
    """What Stash tells of its runs is changed so; None takes a field away."""
    for job in both.stash.world.runs.values():
        job.results = {**job.results, **results}


def asked_for(both: TwoSides, ending: str) -> int:
    return len([path for path in both.stash.paths("GET") if path.endswith(ending)])


# --- equal orders ---


def test_an_equal_order_is_answered_with_the_newest_run_that_has_not_failed(
    both: TwoSides,
) -> None:
    model = trained_at_stash(both)
    first = both.backend.start_run(order(model))
    second = both.backend.start_run(order(model))
    assert (second.run.id, second.existing) == (first.run.id, True)
    assert both.backend.start_run(order(model, max_metric_calls=80)).existing is False
    both.end_run("stash")
    third = both.backend.start_run(order(model))
    assert (third.run.id, third.existing, third.run.status) == (first.run.id, True, "succeeded")
    newer = both.backend.start_run(order(model, new=True))
    assert (newer.existing, newer.run.id != first.run.id) == (False, True)
    both.end_run("stash")
    assert both.backend.start_run(order(model)).run.id == newer.run.id
    assert len(both.stash.world.runs) == 3


def test_an_equal_run_that_failed_is_not_returned(both: TwoSides) -> None:
    model = trained_at_stash(both)
    both.stash.world.fates = ["no luck"]
    failed = both.backend.start_run(order(model))
    both.end_run("stash")
    again = both.backend.start_run(order(model))
    assert (again.existing, again.run.id != failed.run.id) == (False, True)


def test_the_answer_says_when_an_equal_run_ended_and_how_to_start_another(both: TwoSides) -> None:
    model = trained_at_stash(both)
    both.backend.start_run(order(model))
    both.end_run("stash")
    started = both.backend.start_run(order(model))
    assert started.run.finished_at is not None
    said = StartResult.of(started).next
    assert f"it ended on {started.run.finished_at.astimezone(UTC):%Y-%m-%d at %H:%M} UTC" in said
    assert "Whether comments were added since then Stash does not tell" in said
    assert "new=true starts another" in said


def test_equal_orders_at_once_make_one_run(both: TwoSides, monkeypatch: pytest.MonkeyPatch) -> None:
    model = trained_at_stash(both)
    backends = [both.open(both.stage.settings) for _ in range(3)]
    # Whoever has seen the list waits for the others to have seen it: in vain, as it should be.
    listed, meeting = StashClient.list_runs, threading.Barrier(len(backends))

    def seen_by_all(client: StashClient) -> object:
        rows = listed(client)
        with contextlib.suppress(threading.BrokenBarrierError):
            meeting.wait(0.3)
        return rows

    monkeypatch.setattr(StashClient, "list_runs", seen_by_all)
    started: list[StartedRun] = []

    def start(backend: Backends) -> None:
        started.append(backend.start_run(order(model)))

    threads = [threading.Thread(target=start, args=(backend,)) for backend in backends]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(both.stash.world.runs) == 1
    assert len({row.run.id for row in started}) == 1
    assert sorted(row.existing for row in started) == [False, True, True]
    for backend in backends:
        backend.close()


def test_an_order_during_another_that_hangs_sends_nothing(
    both: TwoSides, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = trained_at_stash(both)
    monkeypatch.setattr("stash_mcp.backends.stash.runs.BUSY_SECONDS", 0)
    asked = len(both.stash.asked)
    with try_lock(both.stage.settings.home / "stash-start.lock") as ours:
        assert ours
        with pytest.raises(LibraryBusyError, match="Another run is being started at Stash"):
            both.backend.start_run(order(model))
    assert len(both.stash.asked) == asked
    assert both.backend.start_run(order(model)).existing is False


# --- another Stash ---


def test_with_another_stash_set_a_run_is_shown_as_last_seen_and_not_asked_for(
    both: TwoSides,
) -> None:
    running = both.backend.start_run(order(trained_at_stash(both), max_metric_calls=80)).run
    ended = both.backend.start_run(order(running.request.reward_model_id, install="off")).run
    both.end_run("stash")
    best = both.backend.list_candidates(ended.id)[-1].skill
    first = both.stash
    with stand_in() as second:
        both.stash = second
        both.stage.now += 10**10 * both.stage.now.resolution
        both.backend.reconcile()
        shown = {run.id: run for run in both.backend.list_runs()}
        for run, status in ((running, "queued"), (ended, "succeeded")):
            assert both.backend.get_run(run.id) == shown[run.id]
            assert shown[run.id].status == status
            assert f"of the Stash at {first.base_url}" in (shown[run.id].as_seen or "")
        assert both.backend.list_candidates(running.id) == []
        both.backend.install_skill(InstallOrder(run_id=ended.id))
        assert skill_file(both).read_bytes() == best.encode()
        assert {asked.path.rpartition("/")[2] for asked in second.asked} == {"gepa-runs"}
        both.stash = first
        assert both.backend.get_run(running.id).as_seen is None
        assert both.backend.get_run(running.id).status == "succeeded"


def test_what_one_key_was_told_is_not_shown_to_another(both: TwoSides) -> None:
    run = both.backend.start_run(order(trained_at_stash(both))).run
    both.end_run("stash")
    other = both.open(both.stage.settings)
    # Not in the library, and so held in memory alone.
    with other._stash.kept_runs._database.write() as connection:
        connection.execute("DELETE FROM remote_runs")
    other.get_run(run.id)
    asked = len(both.stash.asked)
    other.get_run(run.id)
    assert len(both.stash.asked) == asked
    with stand_in() as second:
        both.stash = second
        with pytest.raises(StashNotFoundError):
            other.get_run(run.id)
    other.close()


# --- the best skill ---


def test_a_best_skill_that_only_the_skill_file_has_is_installed_from_there(
    both: TwoSides,
) -> None:
    run = both.backend.start_run(order(trained_at_stash(both))).run
    both.end_run("stash")
    [best] = [job.results["best_skill"] for job in both.stash.world.runs.values()]
    shown = json.loads(both.backend._stash._client.get_run(run.id[6:]).model_dump_json())
    without = {**shown, "best_skill": None, "candidates": []}
    both.stash.odd.extend([Odd(body=json.dumps([without]).encode())])
    both.backend.list_runs()
    both.stash.odd.append(Odd(body=json.dumps(without).encode()))
    seen = both.backend.get_run(run.id)
    assert (seen.best_candidate, asked_for(both, "/skill")) == (1, 1)
    both.backend.reconcile()
    assert skill_file(both).read_bytes() == best.encode()
    both.backend.get_run(run.id)
    assert asked_for(both, "/skill") == 1


def test_a_skill_file_that_differs_from_the_best_stops_the_installation_of_it(
    both: TwoSides,
) -> None:
    run = both.backend.start_run(order(trained_at_stash(both), install="off")).run
    both.end_run("stash")
    best = both.backend.list_candidates(run.id)[1].skill
    markdown = {
        "content_type": "text/markdown; charset=utf-8",
        "headers": {"x-stash-cli-latest": "1"},
    }
    both.stash.odd.append(Odd(body=b"---\nname: x\n---\nAnother.", **markdown))
    with pytest.raises(StashAnswerError, match="two texts as the best skill"):
        both.backend.install_skill(InstallOrder(run_id=run.id))
    assert not skill_file(both).exists()
    both.stash.odd.append(Odd(body=f"{best}\n".replace("\n", "\r\n").encode(), **markdown))
    both.backend.install_skill(InstallOrder(run_id=run.id))
    assert skill_file(both).read_bytes() == best.encode()
    asked = asked_for(both, "/skill")
    both.backend.install_skill(InstallOrder(run_id=run.id, candidate=1))
    assert asked_for(both, "/skill") == asked, "one that is named is taken as it is"


def test_a_known_skill_is_installed_while_stash_is_out_of_reach(both: TwoSides) -> None:
    run = both.backend.start_run(order(trained_at_stash(both), install="off")).run
    both.end_run("stash")
    best = both.backend.list_candidates(run.id)[1].skill
    both.stash.always = Odd(reset=True)
    both.backend.install_skill(InstallOrder(run_id=run.id))
    assert skill_file(both).read_bytes() == best.encode()


@pytest.mark.parametrize("listed", ["none", "others", "reordered", "line ends"])
def test_what_is_installed_is_the_best_skill_byte_for_byte(both: TwoSides, listed: str) -> None:
    run = both.backend.start_run(order(trained_at_stash(both))).run
    both.end_run("stash")
    [job] = both.stash.world.runs.values()
    seed, best = job.results["seed_skill"], job.results["best_skill"]
    lists = {
        "none": [],
        "others": [{"skill": seed, "score": 0.5}, {"skill": seed + " Or so.", "score": 0.55}],
        "reordered": [{"skill": best, "score": 0.6}, {"skill": seed, "score": 0.5}],
        "line ends": [{"skill": seed, "score": 0.5}, {"skill": best + "\n", "score": 0.61}],
    }
    told(both, candidates=lists[listed])
    assert (both.backend.get_run(run.id).verdict or "").startswith("Unproven: in-sample alone")
    [notice] = both.backend.reconcile()
    assert (notice.state, skill_file(both).read_bytes()) == ("installed", best.encode())
    assert both.backend.list_candidates(run.id)[0].skill == seed
