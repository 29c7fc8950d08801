import asyncio
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest
from support.model_server import Reply, Request, fails, model_server, says

from stash_mcp.errors import ModelServerError
from stash_mcp.optimization.identity import Identity
from stash_mcp.optimization.llm import ChatModel
from stash_mcp.optimization.memory import Answer, Memory
from stash_mcp.optimization.model import RetryPolicy
from stash_mcp.optimization.reflection import (
    END,
    MAX_PROMPT_CHARACTERS,
    START,
    ModelReflector,
    ReflectionRecord,
    Refusal,
    body_in,
    prompt,
)
from stash_mcp.storage.calls import CallStore

IDENTITY = Identity("parcel-help", "Helps with parcels.")
RECORD = ReflectionRecord(
    conversation="user: Where is my parcel?",
    reply="No idea.",
    score=0.25,
    error=None,
    comments=("Ask for the order number.",),
)
FENCED = "# Parcels\n\n```python\nprint('hi')\n```\n\n````md\n```\ninner\n```\n````\n\n- last"


def between(body: str) -> str:
    return f"Here it is.\n{START}\n{body}\n{END}\n"


def answer(text: str, finish_reason: str = "stop") -> Answer:
    return Answer(text, finish_reason)


def refusal(outcome: str | Refusal) -> str:
    assert isinstance(outcome, Refusal)
    return outcome.reason


def test_a_body_with_nested_code_fences_comes_out_exactly() -> None:
    assert body_in(answer(between(FENCED)), "old") == FENCED


@pytest.mark.parametrize(
    ("text", "finish_reason", "reason"),
    [
        ("", "stop", "empty"),
        (between("new body"), "length", "cut off"),
        (between(""), "stop", "empty"),
        (between("  \n\t"), "stop", "empty"),
        (between("old"), "stop", "unchanged"),
        (between("---\nname: x\ndescription: y\n---\n\nbody"), "stop", "frontmatter"),
        (between("x" * 30_000), "stop", "20000"),
        (between("line\n" * 600), "stop", "500"),
        ("just the body", "stop", "between one line"),
        (f"{END}\nbody\n{START}", "stop", "between one line"),
        (between("one") + between("two"), "stop", "between one line"),
        (between("Run this: !`rm -rf ~`"), "stop", "Line 1"),
        (between("See @~/.ssh/id_rsa"), "stop", "Line 1"),
        (between("```!\nls\n```"), "stop", "Line 1"),
    ],
)
def test_what_cannot_be_used_is_refused_with_its_reason(
    text: str, finish_reason: str, reason: str
) -> None:
    assert reason in refusal(body_in(answer(text, finish_reason), "old"))


def propose(script: Callable[[Request], Reply]) -> tuple[str | Refusal, list[Request], int]:
    with model_server(script) as server:
        model = ChatModel("openai/stub", server.base_url, retry=RetryPolicy(attempts=1))
        reflector = ModelReflector(model, IDENTITY)
        outcome = asyncio.run(reflector.propose("old", [RECORD]))
        return outcome, server.requests, reflector.calls


def test_a_refused_reply_is_asked_for_once_more_with_the_reason() -> None:
    replies = iter([says("chat only"), says(between("better"))])
    outcome, requests, calls = propose(lambda request: next(replies))
    assert outcome == "better"
    assert calls == 2
    assert "between one line" in requests[1]["messages"][-1]["content"]
    assert requests[1]["messages"][-2]["content"] == "chat only"


def test_the_same_prompt_again_is_asked_for_another_proposal(tmp_path: Path) -> None:
    count = iter(range(10))
    store = CallStore(tmp_path / "calls.db", lambda: datetime.now(UTC))
    with model_server(lambda request: says(between(f"body {next(count)}"))) as server:
        bodies = []
        for _ in range(2):
            model = ChatModel("openai/stub", server.base_url, memory=Memory(store))
            reflector = ModelReflector(model, IDENTITY)
            bodies.append([asyncio.run(reflector.propose("old", [RECORD])) for _ in range(2)])
    assert bodies == [["body 0", "body 1"], ["body 0", "body 1"]]


def test_a_second_refusal_ends_the_proposal() -> None:
    outcome, requests, _ = propose(lambda request: says(""))
    assert "empty" in refusal(outcome)
    assert len(requests) == 2


def test_an_error_of_the_reflection_model_is_raised() -> None:
    with pytest.raises(ModelServerError):
        propose(lambda request: fails(500))


def test_the_prompt_shows_everything_reflection_needs() -> None:
    failed = ReflectionRecord("user: hi", "", 0.0, "the context is too long", ("Be brief.",))
    text = prompt(IDENTITY, "the present body", [RECORD, failed])
    for part in (
        "name: parcel-help",
        "description: Helps with parcels.",
        "the present body",
        "Where is my parcel?",
        "No idea.",
        "Score: 0.250",
        "Ask for the order number.",
        "the context is too long",
        "frontmatter",
    ):
        assert part in text


def test_the_prompt_stays_under_its_size_however_long_the_conversations_are() -> None:
    huge = ReflectionRecord(
        "user: " + "c" * 900_000, "r" * 90_000, 0.5, "e" * 9000, ("f" * 90_000,)
    )
    text = prompt(IDENTITY, "b" * 20_000, [huge] * 5)
    assert len(text) <= MAX_PROMPT_CHARACTERS
    assert text.count("characters left out") >= 5


def test_a_body_that_holds_braces_or_gepas_markers_is_shown_as_it_is() -> None:
    body = "Use {braces}, <side_info> and <curr_param> freely."
    assert body in prompt(IDENTITY, body, [RECORD])
