import asyncio
from datetime import UTC, datetime
from pathlib import Path

import pytest
from support.model_server import ModelServer, Reply, Request, calls_tool, fails, model_server, says

from stash_mcp.errors import EmptyReplyError, ModelAuthError, RequestRejectedError
from stash_mcp.models import Message
from stash_mcp.optimization.llm import ChatModel
from stash_mcp.optimization.memory import Answer, Memory, Tool
from stash_mcp.storage.calls import CallStore

HELLO = [Message(role="user", content="hello")]
TOOL = Tool("pick", "Pick one.", {"type": "object"})


@pytest.fixture
def store(tmp_path: Path) -> CallStore:
    return CallStore(tmp_path / "calls.db", lambda: datetime.now(UTC))


def model(
    server: ModelServer, store: CallStore, only_for: str | None = None, go: str = "run-1/1"
) -> ChatModel:
    return ChatModel("openai/stub", server.base_url, memory=Memory(store, only_for, go))


def ask(chat: ChatModel, tool: Tool | None = None, repetition: int = 0) -> Answer:
    return asyncio.run(chat.ask(HELLO, tool, repetition))


def test_the_same_request_is_paid_once_even_by_another_client(store: CallStore) -> None:
    with model_server(lambda request: says("hi", "length")) as server:
        first, second = model(server, store), model(server, store)
        assert ask(first) == ask(second) == Answer("hi", "length")
        assert len(server.requests) == 1
    assert (first.usage.calls, first.usage.remembered) == (1, 0)
    assert (second.usage.calls, second.usage.remembered) == (0, 1)
    assert second.usage.prompt_tokens == 0


def test_a_tools_arguments_are_remembered(store: CallStore) -> None:
    with model_server(lambda request: calls_tool("pick", "{}")) as server:
        assert ask(model(server, store), TOOL).tool_arguments == "{}"
        assert ask(model(server, store), TOOL).tool_arguments == "{}"
        assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("reply", "error"),
    [(fails(400, "too long"), RequestRejectedError), (says(""), EmptyReplyError)],
)
def test_a_rejection_is_an_answer_too(
    reply: Reply, error: type[Exception], store: CallStore
) -> None:
    with model_server(lambda request: reply) as server:
        with pytest.raises(error) as first:
            ask(model(server, store))
        with pytest.raises(error) as second:
            ask(model(server, store))
        assert len(server.requests) == 1
    assert str(first.value) == str(second.value)


def test_what_was_mended_is_asked_again_by_a_resume_and_by_another_run(store: CallStore) -> None:
    replies = iter([fails(400, "credit balance is too low"), says("fine now")])
    with model_server(lambda request: next(replies)) as server:
        for _ in range(2):
            with pytest.raises(RequestRejectedError):
                ask(model(server, store))
        assert ask(model(server, store, go="run-1/2")).text == "fine now"
        # What can be used is shared again with everybody.
        assert ask(model(server, store, go="run-2/1")).text == "fine now"
        assert len(server.requests) == 2


def test_an_answer_that_was_set_aside_is_remembered_by_its_go_alone(store: CallStore) -> None:
    replies = iter([says("nonsense"), says("better")])
    with model_server(lambda request: next(replies)) as server:
        first = model(server, store)
        ask(first)
        asyncio.run(first.set_aside(HELLO))
        assert ask(model(server, store)).text == "nonsense"
        assert ask(model(server, store, go="run-1/2")).text == "better"
        assert len(server.requests) == 2


def test_a_failure_is_not_remembered(store: CallStore) -> None:
    replies = iter([fails(401), says("fine now")])
    with model_server(lambda request: next(replies)) as server:
        with pytest.raises(ModelAuthError):
            ask(model(server, store))
        assert ask(model(server, store)).text == "fine now"


def test_independent_samples_and_other_runs_own_answers_are_asked_for(store: CallStore) -> None:
    count = iter(range(10))

    def script(request: Request) -> Reply:
        return says(f"answer {next(count)}")

    with model_server(script) as server:
        shared = model(server, store)
        assert ask(shared, repetition=0).text == "answer 0"
        assert ask(shared, repetition=1).text == "answer 1"
        assert ask(shared, TOOL).text == "answer 2"
        own = model(server, store, only_for="run-1")
        assert ask(own).text == "answer 3"
        assert ask(own).text == "answer 3"
        assert ask(shared, repetition=0).text == "answer 0"
