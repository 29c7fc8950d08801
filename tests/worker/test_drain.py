"""The worker's loop, with work that the tests choose; everything else is real."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from support.staging import METRICS, Stage

from stash_mcp.errors import ModelAuthError, RunError
from stash_mcp.models import Job, JobKind, JobStatus, Progress, TrainMetrics
from stash_mcp.runs.folder import ERROR_CHARACTERS, JobFolder
from stash_mcp.runs.reflections import Parked, Question, ReflectionStore
from stash_mcp.runs.store import JobStore
from stash_mcp.settings import Settings
from stash_mcp.storage.database import Database
from stash_mcp.storage.files import try_lock
from stash_mcp.worker import drain as drain_module
from stash_mcp.worker.drain import MAX_DEATHS, drain
from stash_mcp.worker.logs import LOG
from stash_mcp.worker.run import do_run
from stash_mcp.worker.train import do_training

SECRET = "hunter2-is-the-key"
RESULT = TrainMetrics.model_validate(METRICS)
Act = Callable[[Job, JobStore], None]


class Work:
    """Stands in for trainings and runs: notes each job, and does what `acts` says for it."""

    def __init__(self) -> None:
        self.jobs: list[Job] = []
        self.acts: dict[str, Act] = {}

    def __call__(
        self, job: Job, settings: Settings, store: JobStore, monotonic: Callable[[], float]
    ) -> TrainMetrics:
        self.jobs.append(job)
        act = self.acts.get(job.id)
        if act is not None:
            act(job, store)
        return RESULT

    @property
    def done(self) -> list[str]:
        return [job.id for job in self.jobs]


@pytest.fixture
def work(monkeypatch: pytest.MonkeyPatch) -> Work:
    work = Work()
    monkeypatch.setattr(drain_module, "_work", lambda kind: work)
    return work


def raising(error: Exception) -> Act:
    def act(job: Job, store: JobStore) -> None:
        raise error

    return act


def queue(stage: Stage, count: int) -> None:
    """rm-1 and so on."""
    stage.conversations()
    for _ in range(count):
        stage.train()


def folder(stage: Stage, job_id: str) -> JobFolder:
    return JobFolder(stage.settings.reward_models_dir / job_id)


# --- the queue ---


def test_jobs_are_done_in_the_order_they_were_queued(stage: Stage, work: Work) -> None:
    queue(stage, 3)
    drain(stage.settings)
    assert work.done == ["rm-1", "rm-2", "rm-3"]
    assert {stage.store.get(job_id).status for job_id in work.done} == {JobStatus.SUCCEEDED}
    assert not stage.store.has_work()


def test_an_empty_queue_ends_the_worker_without_taking_the_lock(stage: Stage, work: Work) -> None:
    drain(stage.settings)
    assert work.done == []
    assert not stage.settings.worker_lock_path.exists()


def test_a_job_that_is_queued_during_another_one_is_done_too(stage: Stage, work: Work) -> None:
    queue(stage, 1)
    work.acts["rm-1"] = lambda job, store: stage.train() and None
    drain(stage.settings)
    assert work.done == ["rm-1", "rm-2"]


def test_a_result_is_in_the_folder_and_in_the_library(stage: Stage, work: Work) -> None:
    queue(stage, 1)
    drain(stage.settings)
    written = json.loads(folder(stage, "rm-1").result_path.read_bytes())
    assert written == {"metrics": RESULT.model_dump(mode="json")}
    assert stage.store.get("rm-1").result == written
    assert stage.backend.get_reward_model("rm-1").metrics == RESULT


def test_a_second_worker_leaves_the_queue_to_the_first(stage: Stage, work: Work) -> None:
    queue(stage, 1)
    job = stage.begin()
    with try_lock(stage.settings.worker_lock_path) as first:
        assert first
        drain(stage.settings)
    assert work.done == []
    assert stage.store.get(job.id).status is JobStatus.RUNNING


# --- jobs that fail ---


def test_a_failed_job_does_not_stop_the_queue(stage: Stage, work: Work) -> None:
    queue(stage, 3)
    work.acts["rm-1"] = raising(RunError("There is no more of it.", "Get some."))
    work.acts["rm-2"] = raising(ModelAuthError("The key is refused.", "Take another."))
    drain(stage.settings)
    jobs = [stage.store.get(job_id) for job_id in work.done]
    assert [job.status for job in jobs] == [JobStatus.FAILED, JobStatus.FAILED, JobStatus.SUCCEEDED]
    assert jobs[0].reason == "There is no more of it. Get some."
    assert not folder(stage, "rm-1").result_path.exists()


def test_a_failed_jobs_error_is_the_end_of_its_log_with_the_reason_last(
    stage: Stage, work: Work
) -> None:
    def act(job: Job, store: JobStore) -> None:
        LOG.info("began %s", "x" * 3000)
        LOG.info("nearly there")
        raise RunError("It broke.", "Mend it.")

    queue(stage, 1)
    work.acts["rm-1"] = act
    drain(stage.settings)
    job = stage.store.get("rm-1")
    log = folder(stage, "rm-1").log_path.read_text("utf-8")
    assert job.error == log[-ERROR_CHARACTERS:]
    assert job.error.endswith("ERROR It broke. Mend it.\n")
    assert "nearly there" in job.error
    assert stage.store.events("rm-1")[-1].message == "It broke. Mend it."


def test_an_exception_that_nobody_foresaw_fails_its_job_with_a_reason(
    stage: Stage, work: Work
) -> None:
    queue(stage, 2)
    work.acts["rm-1"] = raising(ZeroDivisionError("division by zero"))
    drain(stage.settings)
    job = stage.store.get("rm-1")
    assert (job.status, job.reason) == (
        JobStatus.FAILED,
        "Unexpected: ZeroDivisionError: division by zero",
    )
    assert "Traceback" in (job.error or "")
    assert (job.error or "").endswith(f"ERROR {job.reason}\n")
    assert stage.store.get("rm-2").status is JobStatus.SUCCEEDED


@pytest.mark.parametrize("kind", [RunError, ValueError])
def test_secrets_of_the_environment_reach_neither_log_nor_library(
    stage: Stage, work: Work, monkeypatch: pytest.MonkeyPatch, kind: type[Exception]
) -> None:
    def act(job: Job, store: JobStore) -> None:
        LOG.info("calling with %s", SECRET)
        words = (f"The key {SECRET} is refused.", "Take another.")
        raise kind(*words) from KeyError(SECRET)

    monkeypatch.setenv("SOME_API_KEY", SECRET)
    queue(stage, 1)
    work.acts["rm-1"] = act
    drain(stage.settings)
    job = stage.store.get("rm-1")
    assert "The key [redacted] is refused." in (job.reason or "")
    assert "calling with [redacted]" in folder(stage, "rm-1").log_path.read_text("utf-8")
    kept = [path for path in stage.settings.home.rglob("*") if path.is_file()]
    assert not [path for path in kept if SECRET.encode() in path.read_bytes()]


def test_a_job_without_a_place_for_its_log_fails_and_the_queue_goes_on(
    stage: Stage, work: Work
) -> None:
    queue(stage, 2)
    folder(stage, "rm-1").log_path.mkdir()
    drain(stage.settings)
    job = stage.store.get("rm-1")
    assert job.status is JobStatus.FAILED
    assert "worker.log" in (job.reason or "")
    assert work.done == ["rm-2"]


def test_a_result_that_cannot_be_written_fails_its_job(stage: Stage, work: Work) -> None:
    queue(stage, 1)
    (folder(stage, "rm-1").result_path / "in the way").mkdir(parents=True)
    drain(stage.settings)
    job = stage.store.get("rm-1")
    assert job.status is JobStatus.FAILED
    assert "result.json" in (job.reason or "")


def test_a_job_that_was_cancelled_meanwhile_stays_cancelled(stage: Stage, work: Work) -> None:
    def cancel(job: Job, store: JobStore) -> None:
        assert store.cancel(job.id)

    queue(stage, 2)
    work.acts["rm-1"] = cancel
    drain(stage.settings)
    assert stage.store.get("rm-1").status is JobStatus.CANCELLED
    assert stage.store.get("rm-2").status is JobStatus.SUCCEEDED


# --- runs that wait for the agent ---


def reflections(stage: Stage) -> ReflectionStore:
    return ReflectionStore(Database(stage.settings.library_path), stage.clock)


def test_a_run_that_waits_for_the_agent_is_parked_and_the_queue_goes_on(
    stage: Stage, work: Work
) -> None:
    def act(job: Job, store: JobStore) -> None:
        if reflections(stage).ask(job.id, Question("body", "Write.")).answer is None:
            raise Parked

    queue(stage, 2)
    work.acts["rm-1"] = act
    drain(stage.settings)
    job = stage.store.get("rm-1")
    assert (job.status, job.parked, job.reason) == (JobStatus.RUNNING, True, None)
    assert work.done == ["rm-1", "rm-2"]
    drain(stage.settings)
    assert work.done == ["rm-1", "rm-2"]
    assert reflections(stage).answer("rm-1", 1, "new")
    drain(stage.settings)
    assert work.done == ["rm-1", "rm-2", "rm-1"]
    assert stage.store.get("rm-1").status is JobStatus.SUCCEEDED


def test_an_answer_that_came_at_the_last_moment_is_gone_on_with_at_once(
    stage: Stage, work: Work
) -> None:
    def act(job: Job, store: JobStore) -> None:
        if len(work.jobs) == 1:
            reflections(stage).ask(job.id, Question("body", "Write."))
            reflections(stage).answer(job.id, 1, "new")
            raise Parked

    queue(stage, 1)
    work.acts["rm-1"] = act
    drain(stage.settings)
    assert work.done == ["rm-1", "rm-1"]
    assert stage.store.get("rm-1").status is JobStatus.SUCCEEDED


# --- workers that died ---


def die(stage: Stage, **progress: object) -> None:
    """What is left of a worker that was killed during the oldest job."""
    stage.store.requeue_orphans()
    job = stage.begin()
    stage.report(job.id, **progress)


def test_a_job_that_a_dead_worker_left_is_done_and_its_attempts_are_counted(
    stage: Stage, work: Work
) -> None:
    queue(stage, 2)
    die(stage)
    drain(stage.settings)
    assert work.done == ["rm-1", "rm-2"]
    assert work.jobs[0].attempts == 2
    assert "Its worker died; queued again." in [
        event.message for event in stage.store.events("rm-1")
    ]


def test_a_job_whose_worker_died_three_times_at_one_place_fails_saying_so(
    stage: Stage, work: Work
) -> None:
    queue(stage, 2)
    for _ in range(MAX_DEATHS):
        die(stage, phase="training")
    drain(stage.settings)
    job = stage.store.get("rm-1")
    assert job.status is JobStatus.FAILED
    assert f"Its worker died {MAX_DEATHS} times at the same place (training" in (job.reason or "")
    assert "Start the job again." in (job.reason or "")
    assert (job.error or "").rstrip().endswith(job.reason or "-")
    assert work.done == ["rm-2"]


def test_a_job_that_gets_further_each_time_is_tried_again(stage: Stage, work: Work) -> None:
    queue(stage, 1)
    for number in range(MAX_DEATHS + 1):
        die(stage, phase="optimising", proposals=number)
    drain(stage.settings)
    assert work.done == ["rm-1"]
    assert stage.store.get("rm-1").status is JobStatus.SUCCEEDED


def test_the_progress_of_the_attempt_before_is_handed_to_the_next(stage: Stage, work: Work) -> None:
    queue(stage, 1)
    die(stage, phase="training", active_seconds=12.5)
    drain(stage.settings)
    assert work.jobs[0].progress == Progress(phase="training", active_seconds=12.5)


# --- what the work is ---


def test_each_kind_of_job_has_its_work() -> None:
    assert drain_module._work(JobKind.TRAIN) is do_training
    assert drain_module._work(JobKind.GEPA) is do_run


def test_the_jobs_folder_is_made_where_it_is_missing(stage: Stage, work: Work) -> None:
    queue(stage, 1)
    path: Path = folder(stage, "rm-1").path
    for file in path.iterdir():
        file.unlink()
    path.rmdir()
    drain(stage.settings)
    assert stage.store.get("rm-1").status is JobStatus.SUCCEEDED
    assert folder(stage, "rm-1").log_path.is_file()
