"""What runs ask the agent, in a real library."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from stash_mcp.errors import NotFoundError
from stash_mcp.models import JobKind, JobStatus, Progress, TrainRequest, Usage
from stash_mcp.runs.reflections import Question, ReflectionStore
from stash_mcp.runs.store import JobStore
from stash_mcp.storage.database import Database

NOW = datetime(2026, 1, 1, tzinfo=UTC)
FIRST, SECOND = Question("body", "Write one.", "old"), Question("body", "Write another.", "old")


@pytest.fixture
def database(tmp_path: Path) -> Database:
    return Database(tmp_path / "library.db")


@pytest.fixture
def jobs(database: Database) -> JobStore:
    store = JobStore(database, lambda: NOW)
    for job_id in ("run", "other"):
        store.create(job_id, JobKind.GEPA, job_id, TrainRequest())
    store.claim_next()
    return store


@pytest.fixture
def store(database: Database, jobs: JobStore) -> ReflectionStore:
    return ReflectionStore(database, lambda: NOW)


def test_a_question_waits_under_a_number_of_its_run_and_is_told_once(
    store: ReflectionStore, jobs: JobStore
) -> None:
    asked = [store.ask("run", question) for question in (FIRST, SECOND, FIRST)]
    assert [reflection.number for reflection in asked] == [1, 2, 1]
    assert store.pending("run") == (1, 2)
    assert store.get("run", 2) == asked[1]
    assert (asked[1].prompt, asked[1].present, asked[1].state) == (
        "Write another.",
        "old",
        "pending",
    )
    assert [event.message for event in jobs.events("run")] == [
        f"Reflection {number} waits for the agent: get_reflection, or `stash-skills reflection "
        f"run {number}`."
        for number in (1, 2)
    ]


def test_an_answer_is_found_by_whoever_asks_the_same_again(store: ReflectionStore) -> None:
    store.ask("run", FIRST)
    assert store.answer("run", 1, "new")
    again = store.ask("run", FIRST)
    assert (again.number, again.answer, again.answered_at) == (1, "new", NOW)
    assert store.pending("run") == ()
    assert store.last_answered("run") == 1
    # A second one comes too late.
    assert not store.answer("run", 1, "newer")
    assert store.get("run", 1).answer == "new"


def test_another_run_takes_the_answer_unless_it_wants_none(store: ReflectionStore) -> None:
    store.ask("run", FIRST)
    store.ask("run", SECOND)
    store.answer("run", 1, "new")
    taken = store.ask("other", FIRST)
    assert (taken.number, taken.answer, taken.state) == (1, "new", "remembered")
    assert store.ask("other", SECOND, fresh=True).answer is None
    assert store.usage("run") == Usage(calls=1, cost_usd=0.0)
    assert store.usage("other") == Usage(remembered=1, cost_usd=0.0)
    assert store.all_pending() == {"run": (2,), "other": (2,)}
    store.answer("other", 2, "mine")
    assert store.ask("other", SECOND).answer == "mine"


def test_the_same_prompt_on_another_body_is_another_question(store: ReflectionStore) -> None:
    store.ask("run", FIRST)
    assert store.ask("run", Question("body", FIRST.prompt, "older")).number == 2
    assert store.ask("run", Question("identity", FIRST.prompt, FIRST.present)).number == 3


def test_what_a_run_asks_no_more_is_closed_and_opened_again_when_it_does(
    store: ReflectionStore,
) -> None:
    for question in (FIRST, SECOND):
        store.ask("run", question)
    store.ask("other", FIRST)
    store.close_others("run", {2})
    assert (store.pending("run"), store.pending("other")) == ((2,), (1,))
    assert not store.answer("run", 1, "late")
    assert store.ask("run", FIRST).number == 1
    assert store.pending("run") == (1, 2)


def test_an_unknown_number_is_not_found(store: ReflectionStore) -> None:
    with pytest.raises(NotFoundError, match="'run' has no reflection 7"):
        store.get("run", 7)


# --- parking ---


def test_a_parked_run_is_running_and_no_work_until_its_last_answer(
    store: ReflectionStore, jobs: JobStore
) -> None:
    jobs.cancel("other")
    for question in (FIRST, SECOND):
        store.ask("run", question)
    assert jobs.park("run")
    assert (jobs.get("run").status, jobs.get("run").parked) == (JobStatus.RUNNING, True)
    assert not jobs.has_work()
    assert jobs.requeue_orphans() == []
    assert jobs.claim_next() is None
    store.answer("run", 2, "b")
    assert not jobs.has_work()
    store.answer("run", 1, "a")
    assert jobs.has_work()
    job = jobs.claim_next()
    assert job is not None
    assert (job.id, job.parked, job.deaths) == ("run", False, 0)


def test_a_run_whose_answer_came_as_it_was_parked_is_queued_at_once(
    store: ReflectionStore, jobs: JobStore
) -> None:
    store.ask("run", FIRST)
    store.answer("run", 1, "new")
    assert jobs.get("run").status is JobStatus.RUNNING
    assert not jobs.park("run")
    assert jobs.get("run").status is JobStatus.QUEUED


def test_a_worker_that_dies_while_its_run_waits_is_no_death_of_the_run(
    store: ReflectionStore, jobs: JobStore
) -> None:
    store.ask("run", FIRST)
    for _ in range(4):
        assert jobs.requeue_orphans() == []
    assert (jobs.get("run").parked, jobs.get("run").deaths) == (True, 0)
    store.answer("run", 1, "new")
    jobs.claim_next()
    jobs.report("run", Progress(phase="optimising"))
    assert jobs.requeue_orphans() == ["run"]
    assert jobs.get("run").deaths == 1


def test_a_parked_run_is_cancelled_and_carried_on_like_any_other(
    store: ReflectionStore, jobs: JobStore
) -> None:
    store.ask("run", FIRST)
    jobs.park("run")
    assert jobs.cancel("run")
    assert not store.answer("run", 1, "late")
    assert jobs.resume("run")
    job = jobs.get("run")
    assert (job.status, job.parked) == (JobStatus.QUEUED, False)
    assert store.answer("run", 1, "new")


def test_a_cancelled_run_is_not_parked(store: ReflectionStore, jobs: JobStore) -> None:
    store.ask("run", FIRST)
    jobs.cancel("run")
    assert not jobs.park("run")
    assert jobs.get("run").status is JobStatus.CANCELLED
