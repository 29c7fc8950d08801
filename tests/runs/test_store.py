from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from stash_mcp.errors import NotFoundError
from stash_mcp.models import Candidate, JobKind, JobStatus, Progress, TrainRequest
from stash_mcp.runs.store import JobStore
from stash_mcp.storage.database import Database


@pytest.fixture
def store(tmp_path: Path) -> JobStore:
    times = _times()
    return JobStore(Database(tmp_path / "library.db"), lambda: next(times))


def _times() -> Iterator[datetime]:
    moment = datetime(2026, 1, 1, tzinfo=UTC)
    while True:
        moment += timedelta(seconds=1)
        yield moment


def queue(store: JobStore, *job_ids: str) -> None:
    for job_id in job_ids:
        store.create(job_id, JobKind.TRAIN, job_id, TrainRequest())


def test_jobs_are_claimed_in_the_order_they_were_queued(store: JobStore) -> None:
    queue(store, "b", "a", "c")
    claimed = [store.claim_next() for _ in range(4)]
    assert [job.id if job else None for job in claimed] == ["b", "a", "c", None]
    assert all(job.status is JobStatus.RUNNING for job in claimed if job)


def test_a_job_waits_for_a_worker_that_has_what_it_needs(store: JobStore) -> None:
    store.create("keyed", JobKind.TRAIN, "keyed", TrainRequest(), needs=["OPENAI_API_KEY"])
    queue(store, "plain")

    def without(needs: Sequence[str]) -> bool:
        return not needs

    claimed = store.claim_next(without)
    assert claimed is not None
    assert claimed.id == "plain"
    store.succeed("plain", "{}")
    assert store.claim_next(without) is None
    assert not store.has_work(without)
    assert store.has_work()
    keyed = store.claim_next()
    assert keyed is not None
    assert (keyed.id, keyed.needs) == ("keyed", ("OPENAI_API_KEY",))


def test_a_job_is_only_finished_once(store: JobStore) -> None:
    queue(store, "a")
    store.claim_next()
    assert store.succeed("a", '{"x": 1}')
    assert not store.fail("a", "late", "late")
    job = store.get("a")
    assert (job.status, job.result, job.reason) == (JobStatus.SUCCEEDED, {"x": 1}, None)
    assert job.finished_at is not None


def test_what_a_dead_worker_left_is_queued_again_and_counted(store: JobStore) -> None:
    queue(store, "a")
    store.claim_next()
    assert store.requeue_orphans() == ["a"]
    assert store.get("a").status is JobStatus.QUEUED
    again = store.claim_next()
    assert again is not None
    assert again.attempts == 2
    assert "died" in store.events("a")[0].message


def test_only_deaths_at_the_same_place_add_up(store: JobStore) -> None:
    queue(store, "a")
    for calls in (4, 8, 12, 12, 12):
        store.claim_next()
        store.report("a", Progress(phase="optimising", metric_calls=calls))
        store.requeue_orphans()
    assert store.get("a").deaths == 3
    store.claim_next()
    store.report("a", Progress(phase="optimising", metric_calls=13))
    store.requeue_orphans()
    assert store.get("a").deaths == 1


def test_a_failure_keeps_its_reason_and_the_end_of_its_log(store: JobStore) -> None:
    queue(store, "a")
    store.claim_next()
    store.fail("a", "No key.", "...log\nNo key.")
    job = store.get("a")
    assert (job.status, job.reason, job.error) == (JobStatus.FAILED, "No key.", "...log\nNo key.")


def test_an_unknown_job_and_one_of_another_kind_are_not_found(store: JobStore) -> None:
    queue(store, "a")
    with pytest.raises(NotFoundError, match="no run 'a'"):
        store.get("a", JobKind.GEPA)
    with pytest.raises(NotFoundError, match="no reward model 'x'"):
        store.get("x", JobKind.TRAIN)


def test_events_come_in_order_and_from_a_number_on(store: JobStore) -> None:
    queue(store, "a", "b")
    for message in ("one", "two", "three"):
        store.add_event("a", message)
        store.add_event("b", "other")
    events = store.events("a")
    assert [event.message for event in events] == ["one", "two", "three"]
    assert [event.message for event in store.events("a", events[0].number)] == ["two", "three"]


def test_candidates_and_progress_come_back_as_they_were_stored(store: JobStore) -> None:
    queue(store, "a")
    candidate = Candidate(number=1, skill="---", score=0.5, parents=(0,), scores={"t": 0.5})
    store.put_candidate("a", candidate)
    store.put_candidate("a", candidate)
    store.report("a", Progress(phase="optimising", metric_calls=7))
    assert store.candidates("a") == [candidate]
    assert store.get("a").progress.metric_calls == 7
    store.keep_candidates("a", 1)
    assert store.candidates("a") == []


def test_there_is_work_until_every_job_has_ended(store: JobStore) -> None:
    assert not store.has_work()
    queue(store, "a")
    assert store.has_work()
    store.claim_next()
    assert store.has_work()
    store.succeed("a", "{}")
    assert not store.has_work()


def test_lists_are_of_one_kind_and_newest_first(store: JobStore) -> None:
    queue(store, "a", "b")
    assert [job.id for job in store.all(JobKind.TRAIN)] == ["b", "a"]
    assert store.all(JobKind.GEPA) == []
