"""The desk where a run waits for the agent: a real library, and a clock that the test moves."""

import asyncio
from collections.abc import Callable

import pytest
from support.staging import Stage

from stash_mcp.models import Usage
from stash_mcp.runs.reflections import Parked, Question, ReflectionStore
from stash_mcp.storage.database import Database
from stash_mcp.worker.desk import PATIENCE_SECONDS, PHASE, SHORT_PATIENCE_SECONDS, AgentDesk
from stash_mcp.worker.tracker import Tracker

FIRST, SECOND, THIRD = (Question("body", f"Write {word}.", "old") for word in ("a", "b", "c"))


class Scene:
    """A run under way, with a worker at its desk. `at` holds what happens once so many seconds of
    waiting have passed."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.run_id = stage.running().id
        self.store = ReflectionStore(Database(stage.settings.library_path), stage.clock)
        self.now = 1000.0
        self.others_wait = False
        self.at: dict[float, Callable[[], object]] = {}
        self.begin()

    def begin(self) -> None:
        """What a new worker begins with."""
        progress = self.stage.store.get(self.run_id).progress
        self.tracker = Tracker(self.stage.store, self.run_id, lambda: self.now, progress)
        self.desk = AgentDesk(
            self.store,
            self.run_id,
            self.tracker,
            lambda: self.others_wait,
            lambda: self.now,
            sleep=self.sleep,
        )

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(0)
        self.now += seconds
        for moment in [moment for moment in self.at if moment <= self.now - 1000.0]:
            self.at.pop(moment)()

    def ask(self, *questions: Question) -> list[str | BaseException]:
        async def together() -> list[str | BaseException]:
            asked = (self.desk.ask(question) for question in questions)
            return await asyncio.gather(*asked, return_exceptions=True)

        return asyncio.run(together())

    def answer(self, number: int, text: str) -> Callable[[], object]:
        return lambda: self.store.answer(self.run_id, number, text)


@pytest.fixture
def scene(stage: Stage) -> Scene:
    return Scene(stage)


def test_an_answer_that_comes_while_the_worker_waits_is_taken(scene: Scene) -> None:
    scene.at = {30: scene.answer(1, "new")}
    assert scene.ask(FIRST) == ["new"]
    assert scene.desk.usage == Usage(calls=1, cost_usd=0.0)


def test_all_that_is_asked_at_once_is_there_before_any_of_it_is_waited_for(scene: Scene) -> None:
    seen: list[tuple[int, ...]] = []

    def look() -> None:
        seen.append(scene.store.pending(scene.run_id))
        scene.answer(2, "b")()
        scene.answer(1, "a")()

    scene.at = {0: look}
    assert scene.ask(FIRST, SECOND) == ["a", "b"]
    assert seen == [(1, 2)]


def test_a_worker_waits_so_long_and_no_longer(scene: Scene) -> None:
    [outcome] = scene.ask(FIRST)
    assert isinstance(outcome, Parked)
    assert scene.now - 1000.0 == pytest.approx(PATIENCE_SECONDS, abs=1)
    assert scene.store.pending(scene.run_id) == (1,)


def test_it_waits_less_while_another_job_is_in_the_queue(scene: Scene) -> None:
    scene.others_wait = True
    [outcome] = scene.ask(FIRST)
    assert isinstance(outcome, Parked)
    assert scene.now - 1000.0 == pytest.approx(SHORT_PATIENCE_SECONDS, abs=1)


def test_an_agent_that_answers_one_after_the_other_is_waited_for_each_time(scene: Scene) -> None:
    scene.at = {100: scene.answer(1, "a"), 200: scene.answer(2, "b")}
    assert scene.ask(FIRST, SECOND) == ["a", "b"]


def test_waiting_is_no_work_and_is_shown_as_what_it_is(scene: Scene, stage: Stage) -> None:
    shown: list[str] = []

    def look() -> None:
        shown.append(stage.store.get(scene.run_id).progress.phase)
        scene.answer(1, "a")()
        scene.answer(2, "b")()

    scene.tracker.update(at_once=True, phase="optimising")
    scene.now += 5
    scene.at = {50: look}
    scene.ask(FIRST, SECOND)
    scene.now += 2
    assert shown == [PHASE]
    assert scene.tracker.progress.phase == "optimising"
    assert scene.tracker.active_seconds() == pytest.approx(7)


def test_a_run_that_is_carried_on_replays_up_to_its_last_answer(scene: Scene) -> None:
    scene.at = {1: scene.answer(1, "a")}
    scene.now += 3
    scene.ask(FIRST)
    scene.ask(SECOND)
    scene.answer(2, "b")()
    worked = scene.tracker.active_seconds()
    scene.tracker.update(at_once=True)
    scene.begin()
    scene.now += 40
    assert scene.desk.is_replaying
    assert scene.ask(FIRST) == ["a"]
    assert scene.desk.is_replaying
    assert scene.tracker.active_seconds() == pytest.approx(worked)
    assert scene.ask(SECOND) == ["b"]
    assert not scene.desk.is_replaying
    scene.now += 4
    assert scene.tracker.active_seconds() == pytest.approx(worked + 4)


def test_a_new_question_ends_a_replay_that_went_another_way(scene: Scene) -> None:
    scene.at = {1: scene.answer(1, "a")}
    scene.ask(FIRST)
    scene.begin()
    scene.ask(THIRD)
    assert not scene.desk.is_replaying


def test_what_an_earlier_pass_asked_and_this_one_does_not_is_closed(scene: Scene) -> None:
    scene.ask(FIRST, SECOND)
    scene.begin()
    scene.ask(SECOND, THIRD)
    assert scene.store.pending(scene.run_id) == (2, 3)
    assert scene.store.get(scene.run_id, 1).state == "closed"


def test_a_run_with_no_answers_yet_replays_nothing(scene: Scene) -> None:
    assert not scene.desk.is_replaying
    scene.now += 4
    assert scene.tracker.active_seconds() == pytest.approx(4)
