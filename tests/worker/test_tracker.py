import pytest
from support.staging import Stage

from stash_mcp.models import Progress, Usage
from stash_mcp.worker.tracker import REPORT_SECONDS, Tracker


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def job_id(stage: Stage) -> str:
    stage.conversations()
    stage.train()
    return stage.begin().id


def test_progress_is_stored_a_few_times_a_second_at_most(
    stage: Stage, job_id: str, clock: Clock
) -> None:
    tracker = Tracker(stage.store, job_id, clock)
    tracker.update(done=1)
    tracker.update(done=2)
    assert stage.store.get(job_id).progress.done == 1
    assert tracker.progress.done == 2
    clock.now += REPORT_SECONDS
    tracker.update(done=3)
    assert stage.store.get(job_id).progress.done == 3


def test_what_must_be_known_is_stored_at_once(stage: Stage, job_id: str, clock: Clock) -> None:
    tracker = Tracker(stage.store, job_id, clock)
    tracker.update(done=1)
    tracker.update(at_once=True, phase="saving")
    assert stage.store.get(job_id).progress.phase == "saving"


def test_an_event_is_stored_with_the_progress_up_to_it(
    stage: Stage, job_id: str, clock: Clock
) -> None:
    tracker = Tracker(stage.store, job_id, clock)
    tracker.update(done=1)
    tracker.update(done=2)
    tracker.event("Half way.")
    assert stage.store.get(job_id).progress.done == 2
    assert stage.store.events(job_id)[-1].message == "Half way."


def test_what_an_earlier_attempt_spent_counts_on_and_how_far_it_came_is_shown_until_passed(
    stage: Stage, job_id: str, clock: Clock
) -> None:
    before = Progress(
        phase="optimising",
        metric_calls=40,
        proposals=3,
        seed_score=0.4,
        best_score=0.6,
        active_seconds=7.0,
        task_usage=Usage(calls=40),
    )
    tracker = Tracker(stage.store, job_id, clock, before)
    clock.now += 5
    tracker.update(at_once=True, phase="loading")
    stored = stage.store.get(job_id).progress
    assert (stored.active_seconds, stored.task_usage.calls) == (12.0, 40)
    assert (stored.phase, stored.metric_calls, stored.proposals) == ("loading", 40, 3)
    assert tracker.progress.metric_calls == 0, "what the run goes by begins anew"
    tracker.update(
        at_once=True, phase="optimising", metric_calls=41, seed_score=0.4, best_score=0.5
    )
    stored = stage.store.get(job_id).progress
    assert (stored.metric_calls, stored.seed_score, stored.best_score) == (41, 0.4, 0.6)
    tracker.update(at_once=True, phase="finished", metric_calls=39, best_score=0.5)
    stored = stage.store.get(job_id).progress
    assert (stored.metric_calls, stored.proposals, stored.best_score) == (39, 0, 0.5)


def test_what_an_earlier_attempt_told_is_not_told_again(
    stage: Stage, job_id: str, clock: Clock
) -> None:
    before = [event.message for event in stage.store.events(job_id)]
    tracker = Tracker(stage.store, job_id, clock, said=[*before, "Seed.", "Refused.", "Refused."])
    for message in ("Seed.", "Refused.", "Refused.", "Refused.", "New."):
        tracker.event(message)
    told = [event.message for event in stage.store.events(job_id)]
    assert told[len(before) :] == ["Refused.", "New."]


def test_pauses_are_no_work_however_they_overlap(stage: Stage, job_id: str, clock: Clock) -> None:
    tracker = Tracker(stage.store, job_id, clock)
    clock.now += 2
    tracker.pause()
    clock.now += 10
    tracker.pause()
    clock.now += 10
    tracker.go_on()
    clock.now += 10
    assert tracker.active_seconds() == 2
    tracker.go_on()
    clock.now += 3
    assert tracker.active_seconds() == 5
