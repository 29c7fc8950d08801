import asyncio
import json
import re
import threading
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path

import pytest
from support.model_server import Reply, Request, calls_tool, fails, model_server, says
from support.samples import RecordingMonitor, WordScorer, example

from stash_mcp.errors import (
    ModelAnswerError,
    ModelAuthError,
    ModelRateLimitError,
    RunError,
    StashSkillsError,
)
from stash_mcp.models import AdoptedSkill, Example, RunRequest, RunResult
from stash_mcp.optimization.adapter import SkillAdapter
from stash_mcp.optimization.comments import CommentIdentifier, CommentReflector
from stash_mcp.optimization.identity import Identity, ModelIdentifier
from stash_mcp.optimization.limits import Limits
from stash_mcp.optimization.llm import ChatModel
from stash_mcp.optimization.memory import Memory
from stash_mcp.optimization.model import RetryPolicy
from stash_mcp.optimization.optimize import Parts, run_optimization
from stash_mcp.optimization.reflection import END, START, ModelReflector
from stash_mcp.runs.plan import budget_for, default_budget
from stash_mcp.skills.document import parse
from stash_mcp.storage.calls import CallStore

COMMENTS = ("Ask for the order number.", "Say when an answer will come.", "Name the problem.")
EXAMPLES = [example(number, COMMENTS[number % 3]) for number in range(6)]
WORDS = ("order number", "answer will come", "problem")


def request_for(examples: Sequence[Example] = EXAMPLES, **changes: object) -> RunRequest:
    fields: dict[str, object] = {
        "reward_model_id": "rm-1",
        "task_model": "openai/task",
        "reflection_model": "builtin/comments",
        "max_metric_calls": default_budget(len(examples), 3),
        **changes,
    }
    return RunRequest.model_validate(fields)


def obeys(request: Request) -> Reply:
    """A task model that says whatever its skill tells it to."""
    system = request["messages"][0]["content"]
    return says("I heard: " + " ".join(word for word in WORDS if word in system))


def optimise(
    script: Callable[[Request], Reply],
    request: RunRequest | None = None,
    examples: Sequence[Example] = EXAMPLES,
    monitor: RecordingMonitor | None = None,
    scorer: WordScorer | None = None,
    limits: Limits | None = None,
) -> tuple[RunResult, RecordingMonitor, list[Request]]:
    request = request or request_for(examples)
    monitor = monitor or RecordingMonitor()
    with model_server(script) as server:
        fast = RetryPolicy(attempts=1)
        task = ChatModel("openai/task", server.base_url, retry=fast)
        reflection = ChatModel("openai/reflection", server.base_url, retry=fast)
        builtin = request.reflection_model == "builtin/comments"
        parts = Parts(
            task=task,
            scorer=scorer or WordScorer(*WORDS),
            identifier=CommentIdentifier() if builtin else ModelIdentifier(reflection),
            reflector=lambda identity: (
                CommentReflector(request.random_seed)
                if builtin
                else ModelReflector(reflection, identity)
            ),
            limits=limits or Limits(request),
        )
        result = run_optimization(request, examples, parts, monitor)
        return result, monitor, server.requests


def test_comments_make_a_better_skill_without_any_reflection_model() -> None:
    result, monitor, _ = optimise(obeys)
    assert result.best_score > result.seed_score
    assert "Ask for the order number." in result.best_skill
    assert result.candidates[0].skill == result.seed_skill
    assert result.candidates[result.best_candidate].skill == result.best_skill
    assert [candidate.number for candidate in monitor.candidates] == list(
        range(len(result.candidates))
    )
    assert parse(result.best_skill).name == result.skill_name


def test_an_installed_skills_body_is_the_seed() -> None:
    seed = AdoptedSkill(path="/p/SKILL.md", sha256="0" * 64, body="Say sorry.", edited=True)
    request = request_for(skill_name="my-skill", skill_description="Helps.", adopted=seed)
    result, _, asked = optimise(obeys, request)
    assert parse(result.seed_skill).body == "Say sorry."
    assert "Say sorry." in asked[0]["messages"][0]["content"]
    assert result.best_score > result.seed_score


def test_the_seed_body_is_the_description() -> None:
    request = request_for(skill_name="my-skill", skill_description="Helps with parcels.")
    result, _, _ = optimise(obeys, request)
    assert result.seed_skill == (
        "---\nname: my-skill\ndescription: Helps with parcels.\n---\n\nHelps with parcels."
    )


def test_the_system_message_is_the_examples_prompt_and_the_whole_skill() -> None:
    request = request_for(skill_name="my-skill", skill_description="Helps with parcels.")
    _, _, requests = optimise(obeys, request)
    assert requests[0]["messages"][0] == {
        "role": "system",
        "content": "You help.\n\n"
        '<skill name="my-skill">\n'
        "---\nname: my-skill\ndescription: Helps with parcels.\n---\n\n"
        "Helps with parcels.\n"
        "</skill>",
    }


def test_no_system_text_reaches_the_reward_model() -> None:
    scorer = WordScorer(*WORDS)
    optimise(obeys, scorer=scorer)
    assert scorer.texts
    for text in scorer.texts:
        assert re.fullmatch(
            r"user: Question \d: where is my parcel\?\n\nassistant: I heard: .*", text
        )


@pytest.mark.parametrize("count", [1, 2, 3, 5, 10, 20])
def test_the_budget_is_never_exceeded_and_two_proposals_always_fit(count: int) -> None:
    examples = [example(number, f"Say number {number} {'x' * number}.") for number in range(count)]
    minibatch = min(3, count)
    budget = budget_for(2, count, minibatch)
    request = request_for(examples, max_metric_calls=budget)
    _, monitor, requests = optimise(lambda request: says("ok"), request, examples)
    assert monitor.metric_calls <= budget
    assert len(requests) == monitor.metric_calls
    assert monitor.proposals + len(monitor.refusals) >= 2


def test_a_rejected_request_scores_zero_and_its_error_reaches_reflection() -> None:
    prompts: list[str] = []

    def script(request: Request) -> Reply:
        content = request["messages"][-1]["content"]
        if START in content:
            prompts.append(content)
            return says(f"{START}\nBetter {len(prompts)}.\n{END}")
        if "tools" in request:
            return calls_tool("name_skill", json.dumps({"name": "a-b", "description": "C d."}))
        return (
            fails(400, "this prompt is not allowed") if "Question 1" in content else obeys(request)
        )

    request = request_for(reflection_model="openai/reflection")
    result, monitor, _ = optimise(script, request)
    assert monitor.candidates[0].scores["t01"] == 0.0
    assert monitor.candidates[0].scores["t02"] > 0.0
    assert any("this prompt is not allowed" in prompt for prompt in prompts)
    assert result.failed_examples == 1


def test_a_task_model_that_rejects_everything_fails_the_run() -> None:
    with pytest.raises(RunError, match="no usable reply to any of the 6 requests"):
        optimise(lambda request: fails(400, "unknown parameter"))


@pytest.mark.parametrize(("status", "error"), [(401, ModelAuthError), (429, ModelRateLimitError)])
def test_an_error_of_the_task_model_fails_the_run(
    status: int, error: type[StashSkillsError]
) -> None:
    with pytest.raises(error):
        optimise(lambda request: fails(status))


def test_an_error_in_the_middle_of_the_run_fails_it_too() -> None:
    seen: list[Request] = []

    def script(request: Request) -> Reply:
        seen.append(request)
        return fails(401) if len(seen) > 10 else obeys(request)

    with pytest.raises(ModelAuthError):
        optimise(script)


def named(script: Callable[[Request], Reply]) -> Callable[[Request], Reply]:
    """`script`, and a task and identity that work."""

    def whole(request: Request) -> Reply:
        if "tools" in request:
            return calls_tool("name_skill", json.dumps({"name": "a-b", "description": "C d."}))
        return script(request) if START in request["messages"][0]["content"] else obeys(request)

    return whole


def test_an_error_of_the_reflection_model_fails_the_run_at_once() -> None:
    asked: list[Request] = []

    def script(request: Request) -> Reply:
        asked.append(request)
        return fails(401, "no reflection for you")

    request = request_for(reflection_model="openai/reflection")
    with pytest.raises(ModelAuthError, match="no reflection for you"):
        optimise(named(script), request)
    assert len(asked) == 1


def test_a_reflection_model_that_only_babbles_fails_the_run_with_the_reason() -> None:
    request = request_for(reflection_model="openai/reflection")
    monitor = RecordingMonitor()
    with pytest.raises(ModelAnswerError, match="no usable body"):
        optimise(named(lambda request: says("john john")), request, monitor=monitor)
    assert len(monitor.refusals) == 3


def test_a_reflection_that_babbles_now_and_then_does_not_fail_the_run() -> None:
    turns: list[Request] = []

    def script(request: Request) -> Reply:
        turns.append(request)
        if len(turns) % 4 < 2:
            return says("john john")
        return says(f"{START}\nSay the order number, version {len(turns)}.\n{END}")

    request = request_for(reflection_model="openai/reflection")
    result, monitor, _ = optimise(named(script), request)
    assert monitor.refusals
    assert result.best_score > result.seed_score


def test_a_reflection_that_was_never_called_fails_the_run() -> None:
    class Perfect(WordScorer):
        def score(self, texts: Sequence[str]) -> list[float]:
            return [1.0] * len(texts)

    with pytest.raises(RunError, match="never called"):
        optimise(obeys, scorer=Perfect("x"))


@pytest.mark.parametrize("scores", [[float("nan")] * 6, [0.5]])
def test_scores_that_are_no_numbers_or_too_few_fail_the_run(scores: list[float]) -> None:
    class Broken(WordScorer):
        def score(self, texts: Sequence[str]) -> list[float]:
            return scores

    with pytest.raises(RunError, match="reward model"):
        optimise(obeys, scorer=Broken("x"))


def test_the_best_is_measured_on_conversations_it_never_saw() -> None:
    examples = [example(number, COMMENTS[number % 3]) for number in range(12)]
    request = request_for(examples[:8], heldout=4)
    result, monitor, requests = optimise(obeys, request, examples)
    assert result.heldout is not None
    assert result.heldout.examples == 4
    assert result.heldout.gain > 0
    unseen = {"t08", "t09", "t10", "t11"}
    assert not any(unseen & set(candidate.scores) for candidate in monitor.candidates)
    assert len(requests) == monitor.metric_calls + 8
    assert "held-out" in result.verdict


def test_requests_of_the_last_measure_that_are_rejected_are_in_the_verdict() -> None:
    examples = [example(number, COMMENTS[number % 3]) for number in range(12)]

    def rejects_one(request: Request) -> Reply:
        unseen = "Question 9:" in request["messages"][-1]["content"]
        return fails(400, "too long") if unseen else obeys(request)

    result, _, _ = optimise(rejects_one, request_for(examples[:8], heldout=4), examples)
    assert "rejected 2 of the 8 requests on the held-out conversations" in result.verdict


def test_conversations_that_begin_alike_are_samples_of_their_own(tmp_path: Path) -> None:
    twins = [row.model_copy(update={"trace_id": f"{row.trace_id}b"}) for row in EXAMPLES[:3]]
    examples = [*EXAMPLES[:3], *twins]
    store = CallStore(tmp_path / "calls.db", lambda: datetime.now(UTC))
    numbers = iter(range(1000))
    scores = []
    with model_server(lambda request: says(f"reply {next(numbers)}")) as server:
        for _ in range(2):
            task = ChatModel("openai/task", server.base_url, memory=Memory(store))
            scorer = WordScorer(*(f"reply {number}" for number in range(6)))
            with asyncio.Runner() as runner:
                adapter = SkillAdapter(Identity("a-b", "C d."), task, scorer, runner, examples)
                scores.append([trial.reply for trial in adapter.trials(examples, "body")])
        assert len(server.requests) == 6
    assert scores[0] == scores[1]
    assert len(set(scores[0])) == 6


def test_rejected_requests_are_told(tmp_path: Path) -> None:
    def script(request: Request) -> Reply:
        asked = request["messages"][-1]["content"]
        return fails(400, "not this one") if "Question 1" in asked else obeys(request)

    result, monitor, _ = optimise(script)
    assert monitor.rejections[0] == (1, 6)
    assert "rejected 1 of the best candidate's 6 requests" in result.verdict


def test_a_run_without_gain_says_so() -> None:
    result, _, _ = optimise(lambda request: says("always the same"))
    assert result.best_skill == result.seed_skill
    assert result.verdict.startswith("No improvement")


@pytest.mark.parametrize("at_once", [2, 4])
def test_several_proposals_at_once_keep_the_budget_and_go_out_together(at_once: int) -> None:
    reflecting: list[int] = []
    gate = threading.Barrier(at_once, timeout=20)

    def script(request: Request) -> Reply:
        reflecting.append(1)
        # All proposals of a round are under way before the first is answered.
        gate.wait()
        body = request["messages"][0]["content"].partition(START)[2].partition(END)[0]
        return says(f"{START}\n{body.strip()}\nSay the order number, {len(reflecting)}.\n{END}")

    budget = default_budget(len(EXAMPLES), 3, at_once)
    request = request_for(
        reflection_model="openai/reflection", proposals_at_once=at_once, max_metric_calls=budget
    )
    result, monitor, _ = optimise(named(script), request)
    assert monitor.metric_calls <= budget
    assert monitor.proposals % at_once == 0
    assert monitor.proposals >= 6
    assert result.best_score > result.seed_score


def test_an_error_in_one_of_several_proposals_fails_the_run() -> None:
    turns = iter(range(100))

    def script(request: Request) -> Reply:
        return fails(401, "no") if next(turns) == 1 else says(f"{START}\nBetter.\n{END}")

    request = request_for(reflection_model="openai/reflection", proposals_at_once=3)
    with pytest.raises(ModelAuthError):
        optimise(named(script), request)


def test_a_cap_reached_in_the_middle_keeps_what_was_found_and_says_why() -> None:
    ticks = iter(range(1000))
    request = request_for(max_seconds=5)
    caps = Limits(request, seconds=lambda: next(ticks))
    result, monitor, requests = optimise(obeys, request, limits=caps)
    assert result.stop_reason == "time"
    assert len(result.candidates) == len(monitor.candidates) >= 1
    # Six batches at most were sent: no more than the one in flight is overshot.
    assert len(requests) <= 6 * 6


def test_a_cap_that_is_reached_before_the_seed_is_scored_fails_the_run() -> None:
    request = request_for(max_seconds=1)
    with pytest.raises(RunError, match="before the seed was scored"):
        optimise(obeys, request, limits=Limits(request, seconds=lambda: 2))


def test_a_cap_leaves_nothing_for_the_held_out_measure() -> None:
    examples = [example(number, COMMENTS[number % 3]) for number in range(12)]
    ticks = iter(range(1000))
    request = request_for(examples[:8], heldout=4, max_seconds=4)
    result, _, _ = optimise(
        obeys, request, examples, limits=Limits(request, seconds=lambda: next(ticks))
    )
    assert result.stop_reason == "time"
    assert result.heldout is None


def test_proposals_without_a_new_best_end_the_run_when_asked_to() -> None:
    request = request_for(no_improvement_for=2)
    result, monitor, _ = optimise(lambda request: says("always the same"), request)
    assert result.stop_reason == "no_improvement_for"
    assert monitor.proposals + len(monitor.refusals) == 2


def test_a_perfect_candidate_ends_the_run() -> None:
    class Exact(WordScorer):
        def score(self, texts: Sequence[str]) -> list[float]:
            return [1.0 if "order number" in text else 0.1 for text in texts]

    result, _, _ = optimise(obeys, scorer=Exact("x"))
    assert result.stop_reason == "perfect"
    assert result.best_score == 1.0


def test_the_same_seed_gives_the_same_run() -> None:
    first, _, _ = optimise(obeys, request_for(random_seed=5))
    second, _, _ = optimise(obeys, request_for(random_seed=5))
    assert first == second


def test_a_batch_goes_out_at_once() -> None:
    gate = threading.Barrier(6, timeout=20)
    first = iter(range(6))

    def script(request: Request) -> Reply:
        if next(first, None) is not None:
            gate.wait()
        return obeys(request)

    result, _, _ = optimise(script)
    assert result.candidates


def test_nothing_is_printed(capfd: pytest.CaptureFixture[str]) -> None:
    optimise(obeys)
    captured = capfd.readouterr()
    assert (captured.out, captured.err) == ("", "")
