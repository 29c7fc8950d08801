"""The runs of Stash that were started here: followed by the clock, across restarts, and their
skills installed exactly once.
"""

import itertools
import threading
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from stand_in_stash import Odd
from stand_in_stash.world import OTHER
from support.two_sides import TwoSides, trained_at_stash, two_sides

from stash_mcp.backends.base import RunOrder
from stash_mcp.models import Run


@pytest.fixture
def both(tmp_path: Path) -> Iterator[TwoSides]:
    with two_sides(tmp_path) as opened:
        yield opened


def started(both: TwoSides, **fields: object) -> Run:
    model = trained_at_stash(both)
    run = both.backend.start_run(
        RunOrder(reward_model_id=model, task_model="openai/small", **fields)
    ).run
    both.stash.asked.clear()
    return run


def looks(both: TwoSides) -> int:
    return len(both.stash.asked)


def later(both: TwoSides, seconds: float) -> None:
    both.stage.now += timedelta(seconds=seconds)


def skill_file(both: TwoSides) -> Path:
    project = both.stage.settings.project_dir
    return project / ".claude" / "skills" / "reviewers-advice" / "SKILL.md"


def test_it_is_looked_at_when_it_is_time_and_more_and_more_seldom(both: TwoSides) -> None:
    started(both)
    both.backend.reconcile()
    assert looks(both) == 0
    begun, seen = both.stage.now, []
    for second in (*range(1, 20), *range(20, 1200, 5)):
        both.stage.now = begun + timedelta(seconds=second)
        before = looks(both)
        both.backend.reconcile()
        if looks(both) > before:
            seen.append(second)
    gaps = [after - before for before, after in itertools.pairwise(seen)]
    assert 3 <= seen[0] <= 6
    assert max(gaps) <= 125
    assert gaps[-1] >= 90
    assert 12 <= len(seen) <= 22


def test_two_processes_share_the_looks(both: TwoSides) -> None:
    started(both)
    other = both.open(both.stage.settings)
    for _ in range(30):
        later(both, 1)
        both.backend.reconcile()
        other.reconcile()
    assert 3 <= looks(both) <= 5
    other.close()


def test_a_finished_skill_is_installed_with_the_gain_that_is_only_in_sample(
    both: TwoSides,
) -> None:
    run = started(both)
    both.end_run("stash")
    later(both, 10)
    [notice] = both.backend.reconcile()
    assert (notice.run_id, notice.state) == (run.id, "installed")
    assert "+0.090 on the conversations optimised on (in-sample)" in notice.note
    [best] = [row for row in both.backend.list_candidates(run.id) if row.number == 1]
    assert skill_file(both).read_bytes() == best.skill.encode()
    assert both.backend.get_run(run.id).install_state == "installed"
    assert [row.run_id for row in both.backend.take_notices()] == [run.id]
    assert both.backend.take_notices() == []
    asked = looks(both)
    later(both, 1000)
    assert both.backend.reconcile() == []
    assert looks(both) == asked, "what is over is not looked at"


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        (
            {"min_gain": 0.5},
            "+0.090 on the conversations optimised on (in-sample) is less than 0.5",
        ),
        ({"install": "ask"}, "You are asked first"),
    ],
)
def test_the_same_guard_holds_back(both: TwoSides, fields: dict[str, object], reason: str) -> None:
    started(both, **fields)
    both.end_run("stash")
    later(both, 10)
    [notice] = both.backend.reconcile()
    assert (notice.state, reason in notice.note) == ("staged", True), notice.note
    assert not skill_file(both).exists()


def test_off_installs_nothing_and_a_failed_run_neither(both: TwoSides) -> None:
    started(both, install="off")
    both.end_run("stash")
    both.stash.world.fates = ["no luck"]
    failed = both.backend.start_run(
        RunOrder(reward_model_id=both.backend.list_reward_models()[0].id, task_model="openai/other")
    ).run
    both.end_run("stash")
    later(both, 10)
    assert both.backend.reconcile() == []
    assert both.backend.take_notices() == []
    assert both.backend.get_run(failed.id).status == "failed"
    assert not skill_file(both).exists()


def test_a_restart_goes_on_where_it_was(both: TwoSides) -> None:
    run = started(both)
    for _ in range(20):
        later(both, 1)
        both.backend.reconcile()
    both.backend.close()
    before = looks(both)
    again = both.open(both.stage.settings)
    again.reconcile()
    assert looks(both) <= before + 1, "it keeps to the pace"
    both.end_run("stash")
    later(both, 121)
    assert [notice.run_id for notice in again.reconcile()] == [run.id]
    again.close()


def test_an_end_that_somebody_saw_needs_no_further_look(both: TwoSides) -> None:
    run = started(both)
    both.end_run("stash")
    assert both.backend.get_run(run.id).status == "succeeded"
    both.stash.always = Odd(reset=True)
    asked = looks(both)
    assert [notice.state for notice in both.backend.reconcile()] == ["installed"]
    assert looks(both) == asked


def test_two_watchers_install_it_once(both: TwoSides) -> None:
    started(both)
    both.end_run("stash")
    later(both, 10)
    watchers = [both.open(both.stage.settings) for _ in range(4)]
    barrier = threading.Barrier(len(watchers))
    settled: list[str] = []

    def watch(number: int) -> None:
        barrier.wait(10)
        for _ in range(20):
            settled.extend(notice.run_id for notice in watchers[number].reconcile())

    threads = [threading.Thread(target=watch, args=(number,)) for number in range(len(watchers))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(settled) == 1
    [row] = both.backend.list_installed_skills()
    assert row.installation.version == 1
    told = [notice for watcher in watchers for notice in watcher.take_notices()]
    assert len(told) == 1
    assert looks(both) == 1
    for watcher in watchers:
        watcher.close()


def test_a_skill_that_was_taken_away_since_is_not_installed_again(both: TwoSides) -> None:
    started(both)
    both.end_run("stash")
    later(both, 10)
    both.backend.reconcile()
    skill_file(both).unlink()
    later(both, 1000)
    assert both.open(both.stage.settings).reconcile() == []
    assert not skill_file(both).exists()


def test_a_server_that_asks_to_wait_is_left_alone_for_so_long(both: TwoSides) -> None:
    started(both)
    both.stash.always = Odd(status=429, headers={"retry-after": "600"}, body=b"{}")
    later(both, 10)
    both.backend.reconcile()
    both.stash.always = None
    both.end_run("stash")
    asked = looks(both)
    for _ in range(50):
        later(both, 10)
        both.backend.reconcile()
    assert looks(both) == asked
    later(both, 110)
    assert len(both.backend.reconcile()) == 1


def test_a_run_that_this_account_does_not_know_is_looked_for_seldom_until_it_is_found(
    both: TwoSides,
) -> None:
    run = started(both)
    both.key = OTHER
    later(both, 10)
    both.backend.reconcile()
    for _ in range(1000):
        later(both, 100)
        both.backend.reconcile()
    assert 5 <= looks(both) <= 10
    shown = both.backend.get_run(run.id)
    assert (shown.status, shown.install.mode) == (run.status, "auto")
    assert "not found by the account" in (shown.as_seen or "")
    both.key = both.stash.key
    assert both.backend.get_run(run.id).as_seen is None
    both.end_run("stash")
    later(both, 10)
    assert [notice.run_id for notice in both.backend.reconcile()] == [run.id]


def test_stash_out_of_reach_does_not_keep_the_skills_of_this_machine_waiting(
    both: TwoSides,
) -> None:
    started(both)
    both.stash.always = Odd(reset=True)
    local = both.stage.finished(("Answer.", 0.4), ("Ask for the order number.", 0.6))
    later(both, 10)
    assert [notice.run_id for notice in both.backend.reconcile()] == [local.id]
