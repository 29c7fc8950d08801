"""Several processes that settle the same finished runs: each once, whoever is killed."""

from pathlib import Path

import pytest

from benchmarks.exactly_once import Size, compete
from benchmarks.finished_runs import FinishedRuns, id_of
from stash_mcp.storage.files import try_lock

RUNS = 40


def test_three_watchers_and_a_worker_settle_install_and_tell_each_run_once() -> None:
    report = compete(Size(runs=RUNS, kills=1))
    assert report.kills == 1
    assert set(report.settled.values()) == {1}
    assert set(report.installed.values()) == {1}
    assert set(report.told.values()) == {1}
    for counted in (report.settled, report.installed, report.told):
        assert len(counted) == RUNS
    assert (report.waiting, report.wrong_files) == (0, 0)


def test_a_run_that_ends_while_another_process_settles_is_not_left_waiting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = FinishedRuns(tmp_path)
    first, second = runs.backend(), runs.backend()
    for number in range(2):
        runs.queue(number)
    store = runs.store()
    store.claim_next()
    runs.finish(store, 0)
    settle = first._settle

    def the_second_one_ends_now(*arguments):
        if store.claim_next() is not None:
            runs.finish(store, 1)
            # Its worker looks, and goes: the first one has the lock.
            assert second.reconcile() == []
        return settle(*arguments)

    monkeypatch.setattr(first, "_settle", the_second_one_ends_now)
    assert [notice.run_id for notice in first.reconcile()] == [id_of(0), id_of(1)]
    assert runs.skill_file(1).exists()


def test_while_another_process_settles_one_that_looks_does_nothing(tmp_path: Path) -> None:
    runs = FinishedRuns(tmp_path)
    runs.queue(0)
    store = runs.store()
    store.claim_next()
    runs.finish(store, 0)
    with try_lock(runs.settings.home / "reconcile.lock") as ours:
        assert ours
        assert runs.backend().reconcile() == []
    assert [notice.state for notice in runs.backend().reconcile()] == ["installed"]
