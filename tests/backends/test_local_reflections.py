"""What a run asks the agent, and its answers, through the local backend."""

from dataclasses import dataclass

import pytest
from support.staging import Stage

from stash_mcp.backends.base import RunOrder
from stash_mcp.backends.local import LocalBackend
from stash_mcp.backends.local import reflections as reflections_module
from stash_mcp.errors import InputError, NotFoundError, NotReadyError, ReflectionRefusedError
from stash_mcp.models import JobStatus, Run, Submission
from stash_mcp.runs.reflections import Question, ReflectionStore
from stash_mcp.settings import Settings
from stash_mcp.storage.database import Database


@dataclass
class Asking:
    """A run under way that asked these questions, and a backend that counts started workers."""

    stage: Stage
    run_id: str
    store: ReflectionStore
    backend: LocalBackend
    started: list[Settings]

    def ask(self, *prompts: str) -> None:
        for prompt in prompts:
            self.store.ask(self.run_id, Question("body", prompt, "old"))

    def submit(self, number: int, body: str) -> Run:
        submission = Submission(run_id=self.run_id, number=number, body=body)
        return self.backend.submit_reflection(submission)


@pytest.fixture
def asking(stage: Stage) -> Asking:
    stage.conversations()
    run = start(stage, stage.trained().id)
    stage.begin()
    started: list[Settings] = []
    backend = LocalBackend(
        stage.settings,
        clock=stage.clock,
        new_id=lambda: "x",
        start_worker=lambda settings: started.append(settings) is None,
    )
    store = ReflectionStore(Database(stage.settings.library_path), stage.clock)
    started.clear()
    return Asking(stage, run.id, store, backend, started)


def start(stage: Stage, reward_model_id: str, **changes: object) -> Run:
    order = {
        "reward_model_id": reward_model_id,
        "task_model": "openai/small",
        "reflection_model": "agent",
        "new": True,
        **changes,
    }
    return stage.backend.start_run(RunOrder.model_validate(order)).run


def test_the_plan_says_how_often_the_agent_is_asked_at_most(stage: Stage) -> None:
    stage.conversations()
    model = stage.trained().id
    plan = start(stage, model).plan
    assert plan.reflection_calls_at_most == plan.proposals_at_best + 1
    named = start(stage, model, skill_name="parcels", skill_description="About parcels.").plan
    assert named.reflection_calls_at_most == named.proposals_at_best


def test_a_run_says_what_waits_and_the_first_of_it_is_read(asking: Asking) -> None:
    found = asking.backend.get_reflection(asking.run_id)
    assert (found.reflection, found.waiting) == (None, ())
    asking.ask("Write a.", "Write b.")
    [listed] = asking.backend.list_runs()
    assert listed == asking.backend.get_run(asking.run_id)
    assert listed.reflections_waiting == (1, 2)
    found = asking.backend.get_reflection(asking.run_id)
    assert found.reflection is not None
    assert (found.reflection.number, found.reflection.prompt) == (1, "Write a.")
    assert found.waiting == (1, 2)
    second = asking.backend.get_reflection(asking.run_id, 2).reflection
    assert second is not None
    assert second.prompt == "Write b."


def test_a_refused_answer_says_why_and_the_reflection_waits_on(asking: Asking) -> None:
    asking.ask("Write a.")
    with pytest.raises(ReflectionRefusedError, match=r"Line 1.*It still waits") as caught:
        asking.submit(1, "Run !`rm -rf ~` first.")
    assert isinstance(caught.value, InputError)
    assert asking.store.pending(asking.run_id) == (1,)
    assert asking.submit(1, "Ask first.\n").reflections_waiting == ()
    assert asking.store.get(asking.run_id, 1).answer == "Ask first."


def test_an_answer_is_given_once(asking: Asking) -> None:
    asking.ask("Write a.", "Write b.")
    asking.submit(1, "Ask first.")
    with pytest.raises(NotReadyError, match=r"1 of 'run-2' is answered\. Those that wait: 2\."):
        asking.submit(1, "Ask last.")
    with pytest.raises(NotReadyError, match="is answered"):
        asking.backend.get_reflection(asking.run_id, 1)
    asking.store.close_others(asking.run_id, ())
    with pytest.raises(NotReadyError, match=r"is not asked any more\. Those that wait: none\."):
        asking.submit(2, "Ask last.")


def test_unknown_numbers_and_runs_and_runs_that_ask_no_agent_are_refused(
    asking: Asking, stage: Stage
) -> None:
    with pytest.raises(NotFoundError, match="has no reflection 9"):
        asking.submit(9, "Ask first.")
    with pytest.raises(NotFoundError, match="no run 'run-99'"):
        asking.backend.get_reflection("run-99")
    other = start(stage, "rm-1", reflection_model="builtin/comments")
    with pytest.raises(InputError, match="asks no agent: its skill is written by 'builtin"):
        asking.backend.get_reflection(other.id)


def test_a_run_that_is_over_asks_nothing_and_one_that_is_carried_on_does_again(
    asking: Asking,
) -> None:
    asking.ask("Write a.")
    asking.backend.cancel(asking.run_id)
    assert asking.backend.get_run(asking.run_id).reflections_waiting == ()
    with pytest.raises(NotReadyError, match=r"is cancelled and asks for nothing.*resume"):
        asking.submit(1, "Ask first.")
    asking.backend.resume_run(asking.run_id)
    assert asking.submit(1, "Ask first.").status is JobStatus.QUEUED


def test_the_last_answer_to_a_parked_run_starts_a_worker(asking: Asking) -> None:
    asking.ask("Write a.", "Write b.")
    asking.stage.store.park(asking.run_id)
    asking.submit(1, "Ask first.")
    assert asking.started == []
    run = asking.submit(2, "Ask last.")
    assert run.status is JobStatus.QUEUED
    assert asking.started


def test_an_answer_starts_a_worker_where_the_one_that_waited_died(asking: Asking) -> None:
    asking.ask("Write a.", "Write b.")
    asking.submit(1, "Ask first.")
    assert asking.started


def test_an_installation_that_could_not_work_starts_no_worker(
    asking: Asking, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reflections_module, "has_extra", lambda name: False)
    asking.ask("Write a.")
    asking.stage.store.park(asking.run_id)
    # It looks for dead workers by itself at times; not in this test.
    monkeypatch.setattr(asking.backend, "_revive", lambda: None)
    assert asking.submit(1, "Ask first.").status is JobStatus.QUEUED
    assert asking.started == []
