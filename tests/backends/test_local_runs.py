"""Runs through the local backend, up to the queue, and reading those under way."""

import json

import pytest
from support.staging import START, Stage, conversation, jsonl

from stash_mcp.backends.base import AnnotationDraft, InstallOrder, RunOrder
from stash_mcp.errors import (
    BudgetError,
    ExamplesError,
    InputError,
    NotFoundError,
    NotReadyError,
    SkillDocumentError,
)
from stash_mcp.models import Example, JobStatus, Run
from stash_mcp.runs.folder import JobFolder

MODEL = "rm-1"


@pytest.fixture
def ready(stage: Stage) -> Stage:
    """12 conversations and the reward model `rm-1`, trained on them."""
    stage.conversations(12)
    stage.trained()
    return stage


def start(stage: Stage, **changes: object) -> Run:
    order = {
        "reward_model_id": MODEL,
        "task_model": "openai/small",
        "reflection_model": "builtin/comments",
        **changes,
    }
    return stage.backend.start_run(RunOrder.model_validate(order)).run


def examples(stage: Stage, run: Run) -> list[Example]:
    return JobFolder(stage.settings.runs_dir / run.id).examples()


def ids(stage: Stage, run: Run) -> list[str]:
    return [example.trace_id for example in examples(stage, run)]


# --- the plan ---


def test_a_run_answers_with_its_plan(ready: Stage) -> None:
    run = start(ready)
    assert (run.status, run.created_at) == (JobStatus.QUEUED, ready.now)
    plan = run.plan
    assert (plan.examples, plan.heldout_examples, plan.commented_examples) == (12, 0, 12)
    # Six accepted proposals: 12 + 6 * (2 * 3 + 12).
    assert plan.max_metric_calls == run.request.max_metric_calls == 120
    assert (plan.proposals_at_worst, plan.proposals_at_best) == (6, 16)
    assert (plan.task_calls_at_most, plan.reflection_calls_at_most) == (120, 0)
    assert ready.backend.get_run(run.id) == run
    job = json.loads((ready.settings.runs_dir / run.id / "job.json").read_bytes())
    assert (job["kind"], job["reward_model_key"], job["max_metric_calls"]) == ("gepa", MODEL, 120)


def test_the_default_budget_is_never_under_40(ready: Stage) -> None:
    assert start(ready, trace_ids=["c-00"]).plan.max_metric_calls == 40


def test_a_minibatch_is_no_larger_than_the_conversations(ready: Stage) -> None:
    run = start(ready, trace_ids=["c-00", "c-01"], max_metric_calls=14, minibatch_size=50)
    assert run.plan.proposals_at_worst == 2


def test_a_budget_below_two_proposals_is_refused_with_the_smallest_that_works(
    ready: Stage,
) -> None:
    with pytest.raises(BudgetError) as caught:
        start(ready, max_metric_calls=47)
    assert caught.value.minimum == 48
    assert ready.backend.list_runs() == []
    assert not ready.settings.runs_dir.exists()
    assert start(ready, max_metric_calls=48).plan.proposals_at_worst == 2


# --- which conversations ---


@pytest.mark.parametrize(("count", "heldout"), [(19, 0), (20, 5), (31, 7)])
def test_a_quarter_is_held_out_from_20_conversations_on(
    stage: Stage, count: int, heldout: int
) -> None:
    stage.conversations(count)
    stage.trained()
    run = start(stage)
    assert (run.plan.examples, run.plan.heldout_examples) == (count - heldout, heldout)
    assert run.request.heldout == heldout
    assert sorted(ids(stage, run)) == [f"c-{number:02}" for number in range(count)]
    everything = start(stage, heldout=False)
    assert (everything.plan.examples, everything.plan.heldout_examples) == (count, 0)


def test_the_held_out_ones_depend_on_the_seed_alone(stage: Stage) -> None:
    stage.conversations(24)
    stage.trained()
    first, same, other = (start(stage, random_seed=seed, new=True) for seed in (1, 1, 2))
    assert ids(stage, first)[-6:] == ids(stage, same)[-6:]
    assert ids(stage, first)[-6:] != ids(stage, other)[-6:]


def test_a_run_takes_its_reward_models_own_conversations(ready: Stage) -> None:
    ready.backend.import_traces(jsonl([conversation("later-1"), conversation("later-2")]))
    assert ids(ready, start(ready)) == [f"c-{number:02}" for number in range(12)]


def test_conversations_are_chosen_by_id_and_by_pattern(ready: Stage) -> None:
    ready.backend.import_traces(jsonl([conversation("later-1"), conversation("later-2")]))
    run = start(ready, trace_ids=["later-*", "c-03", "c-0[0-1]"])
    assert ids(ready, run) == ["c-00", "c-01", "c-03", "later-1", "later-2"]
    with pytest.raises(NotFoundError, match="no trace 'none-"):
        start(ready, trace_ids=["none-*"])


def test_conversations_that_cannot_be_replayed_are_counted_with_the_reason(ready: Stage) -> None:
    steps = [{"role": "assistant", "content": "Hello!"}, {"role": "user", "content": "Hi."}]
    ready.backend.import_traces(jsonl([{"id": f"s-{n}", "steps": steps} for n in range(3)]))
    run = start(ready, trace_ids=["c-*", "s-*"])
    assert run.plan.examples == 12
    assert [(skipped.reason, skipped.count) for skipped in run.plan.skipped] == [
        ("starts with the assistant", 3)
    ]
    with pytest.raises(ExamplesError, match="None of the 3"):
        start(ready, trace_ids=["s-*"])


def test_flagged_comments_leave_the_run_and_the_others_come_oldest_first(ready: Stage) -> None:
    [first] = ready.backend.get_trace("c-00").annotations
    ready.now += (ready.now - START) * 2
    second = ready.backend.annotate(AnnotationDraft(trace_id="c-00", step_index=1, comment="Two."))
    ready.backend.annotate(AnnotationDraft(trace_id="c-00", rating=1))
    run = start(ready, trace_ids=["c-00"])
    assert examples(ready, run)[0].feedback == (first.comment, second.comment)
    ready.backend.flag_annotation(first.id, "wrong", flagged=True)
    run = start(ready, trace_ids=["c-00"])
    assert examples(ready, run)[0].feedback == ("Two.",)
    ready.backend.flag_annotation(second.id, "wrong", flagged=True)
    run = start(ready, trace_ids=["c-00"], reflection_model="openai/big")
    assert run.plan.commented_examples == 0


def test_the_builtin_reflection_is_refused_where_no_comment_is_left(ready: Stage) -> None:
    [comment] = ready.backend.get_trace("c-00").annotations
    ready.backend.flag_annotation(comment.id, "wrong", flagged=True)
    with pytest.raises(ExamplesError, match="None of the 1 conversations has a comment"):
        start(ready, trace_ids=["c-00"])
    assert ready.backend.list_runs() == []


# --- which reward model ---


def test_an_unknown_reward_model_is_refused(ready: Stage) -> None:
    with pytest.raises(NotFoundError, match="no reward model 'rm-9'"):
        start(ready, reward_model_id="rm-9")


def test_a_reward_model_that_is_not_trained_yet_is_refused_until_it_is(stage: Stage) -> None:
    stage.conversations()
    stage.train()
    with pytest.raises(NotReadyError, match=r"is queued, not trained\. Wait for it"):
        start(stage)
    stage.begin()
    with pytest.raises(NotReadyError, match=r"is running, not trained\. Wait for it"):
        start(stage)
    stage.store.fail(MODEL, "Memory ran out.", "the log")
    with pytest.raises(NotReadyError, match=r"ended with: Memory ran out\. Train another one\."):
        start(stage)
    assert stage.backend.list_runs() == []


def test_a_cancelled_training_is_no_reward_model(stage: Stage) -> None:
    stage.conversations()
    stage.train()
    stage.backend.cancel(MODEL)
    with pytest.raises(NotReadyError, match=r"ended with: cancelled\. Train another one\."):
        start(stage)


def test_a_run_is_no_reward_model(ready: Stage) -> None:
    run = start(ready)
    with pytest.raises(NotFoundError, match=f"no reward model '{run.id}'"):
        start(ready, reward_model_id=run.id)


# --- the rest of the order ---


def test_a_skills_name_and_description_are_checked_before_the_run(ready: Stage) -> None:
    with pytest.raises(SkillDocumentError, match="cannot be called so"):
        start(ready, skill_name="No Good")
    with pytest.raises(SkillDocumentError, match="cannot be called so"):
        start(ready, skill_description="x" * 1025)
    assert ready.backend.list_runs() == []
    run = start(ready, skill_name="good", skill_description="Use it.")
    assert (run.skill_name, run.skill_description) == ("good", "Use it.")


# --- reading ---


def test_a_run_under_way_shows_the_candidates_scored_so_far(ready: Stage) -> None:
    run = start(ready)
    assert ready.backend.list_candidates(run.id) == []
    assert (run.seed_score, run.best_candidate) == (None, None)
    ready.begin()
    ready.report(run.id, phase="optimising", metric_calls=18, proposals=1)
    ready.score(run.id, ("Seed.", 0.4), ("Worse.", 0.3), ("Better.", 0.6))
    shown = ready.backend.get_run(run.id)
    assert (shown.status, shown.verdict) == (JobStatus.RUNNING, None)
    assert (shown.seed_score, shown.best_score, shown.best_candidate) == (0.4, 0.6, 2)
    assert shown.progress.metric_calls == 18
    assert [c.number for c in ready.backend.list_candidates(run.id)] == [0, 1, 2]
    with pytest.raises(NotReadyError, match=r"is running; only a finished run"):
        ready.backend.install_skill(InstallOrder(run_id=run.id))


def test_a_run_that_has_ended_shows_its_result(stage: Stage) -> None:
    run = stage.finished(("Seed.", 0.4), ("Better.", 0.6))
    assert (run.status, run.skill_name) == (JobStatus.SUCCEEDED, "polite-support")
    assert (run.seed_score, run.best_score, run.best_candidate) == (0.4, 0.6, 1)
    assert run.heldout is not None
    assert run.verdict == "The skill helped; how far is uncertain."
    assert stage.backend.list_runs() == [run]


def test_a_failed_run_shows_why_and_installs_nothing(ready: Stage) -> None:
    run = start(ready)
    ready.begin()
    ready.store.fail(run.id, "The key was refused.", "log\nThe key was refused.")
    shown = ready.backend.get_run(run.id)
    assert (shown.status, shown.reason) == (JobStatus.FAILED, "The key was refused.")
    with pytest.raises(NotReadyError, match=r"ended with: The key was refused\. Resume it or"):
        ready.backend.install_skill(InstallOrder(run_id=run.id))


def test_events_are_those_of_one_job_from_a_number_on(ready: Stage) -> None:
    run = start(ready)
    ready.begin()
    ready.store.add_event(run.id, "Half way.")
    events = ready.backend.events(run.id)
    assert [event.message for event in events] == ["Started.", "Half way."]
    assert ready.backend.events(run.id, after=events[0].number) == events[1:]
    with pytest.raises(NotFoundError):
        ready.backend.events("run-9")


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("localhost:1234", "not the URL"),
        ("http://", "not the URL"),
        ("http://h:99999/v1", "not the URL"),
        ("http://bob:secret@host/v1", "password"),
        ("http://host/v1?api_key=secret", "parameter"),
    ],
)
def test_a_base_url_that_cannot_be_used_or_holds_a_secret_is_refused(
    stage: Stage, url: str, said: str
) -> None:
    stage.conversations()
    stage.trained()
    with pytest.raises(InputError, match=said) as caught:
        start(stage, task_api_base=url)
    assert "secret" not in str(caught.value)
    assert stage.backend.list_runs() == []
