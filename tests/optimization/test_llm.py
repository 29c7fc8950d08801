import asyncio
import random
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest
from support.model_server import Reply, calls_tool, fails, free_port, model_server, says

from stash_mcp.errors import (
    EmptyReplyError,
    ModelAuthError,
    ModelError,
    ModelNotFoundError,
    ModelRateLimitError,
    ModelServerError,
    ModelUnreachableError,
    RequestRejectedError,
)
from stash_mcp.models import Message
from stash_mcp.optimization.llm import ChatModel
from stash_mcp.optimization.memory import Answer, Tool
from stash_mcp.optimization.model import RetryPolicy

HELLO = [Message(role="user", content="hello")]
TOOL = Tool("pick", "Pick one.", {"type": "object", "properties": {"x": {"type": "string"}}})


class Pauses:
    """Records the pauses between attempts instead of waiting."""

    def __init__(self) -> None:
        self.seconds: list[float] = []

    async def __call__(self, seconds: float) -> None:
        self.seconds.append(seconds)


@pytest.fixture
def pauses() -> Pauses:
    return Pauses()


def chat(base_url: str, pauses: Pauses, timeout: float = 20.0, **options: object) -> ChatModel:
    retry = RetryPolicy(attempts=3, sleep=pauses, jitter=random.Random(1))
    return ChatModel("openai/stub", base_url, timeout=timeout, retry=retry, **options)  # type: ignore[arg-type]


def ask(model: ChatModel, tool: Tool | None = None) -> Answer:
    return asyncio.run(model.ask(HELLO, tool))


def test_an_answer_comes_back_with_its_usage(pauses: Pauses) -> None:
    with model_server(lambda request: says("hi there")) as server:
        model = chat(server.base_url, pauses)
        answer = ask(model)
    assert answer.text == "hi there"
    assert not answer.truncated
    assert (model.usage.calls, model.usage.prompt_tokens) == (1, 11)
    assert model.usage.completion_tokens == 7


def test_a_server_of_ones_own_costs_nothing_known(pauses: Pauses) -> None:
    with model_server(lambda request: says("hi")) as server:
        model = ChatModel("openai/gpt-4o-mini", server.base_url)
        ask(model)
    assert model.usage.cost_usd is None


def test_a_tool_is_forced_and_its_arguments_come_back(pauses: Pauses) -> None:
    with model_server(lambda request: calls_tool("pick", '{"x": "1"}')) as server:
        answer = ask(chat(server.base_url, pauses), TOOL)
        request = server.requests[0]
    assert answer.tool_arguments == '{"x": "1"}'
    assert request["tool_choice"] == {"type": "function", "function": {"name": "pick"}}


@pytest.mark.parametrize(
    ("reply", "expected", "requests"),
    [
        (fails(400, "bad parameter"), RequestRejectedError, 1),
        (fails(422, "unprocessable"), RequestRejectedError, 1),
        (fails(413, "too large"), RequestRejectedError, 1),
        (
            fails(400, "maximum context length is 10 tokens", "context_length_exceeded"),
            RequestRejectedError,
            1,
        ),
        (
            fails(400, "the request (900 tokens) exceeds the available context size (512 tokens)"),
            RequestRejectedError,
            1,
        ),
        (fails(400, "content policy", "content_policy_violation"), RequestRejectedError, 1),
        (fails(401, "bad key"), ModelAuthError, 1),
        (fails(403, "forbidden"), ModelAuthError, 1),
        (fails(404, "no such model"), ModelNotFoundError, 1),
        (fails(408, "slow"), ModelServerError, 3),
        (fails(429, "slow down"), ModelRateLimitError, 3),
        (fails(500, "boom"), ModelServerError, 3),
        (fails(502, "gateway"), ModelServerError, 3),
        (fails(503, "busy"), ModelServerError, 3),
        (Reply(reset=True), ModelUnreachableError, 3),
        (says(""), EmptyReplyError, 1),
        (says(None), EmptyReplyError, 1),
        (says("half", "content_filter"), EmptyReplyError, 1),
    ],
    ids=lambda value: getattr(value, "__name__", None) or str(getattr(value, "status", value)),
)
def test_each_failure_of_a_server_has_its_error_and_its_number_of_tries(
    reply: Reply, expected: type[ModelError], requests: int, pauses: Pauses
) -> None:
    with model_server(lambda request: reply) as server:
        with pytest.raises(expected) as caught:
            ask(chat(server.base_url, pauses))
        assert len(server.requests) == requests
    assert caught.value.fix
    assert len(pauses.seconds) == requests - 1


def test_no_choice_at_all_is_an_empty_reply(pauses: Pauses) -> None:
    body = {"id": "x", "object": "chat.completion", "created": 1, "model": "m", "choices": []}
    with (
        model_server(lambda request: Reply(body)) as server,
        pytest.raises((EmptyReplyError, ModelServerError)),
    ):
        ask(chat(server.base_url, pauses))


def test_a_retry_after_that_is_a_date_is_honoured(pauses: Pauses) -> None:
    date = format_datetime(datetime.now(UTC) + timedelta(seconds=30), usegmt=True)
    replies = iter([fails(429, "wait", retry_after=date), says("done")])
    with model_server(lambda request: next(replies)) as server:
        ask(chat(server.base_url, pauses))
    assert 20 < pauses.seconds[0] <= 30


def test_a_key_across_the_place_where_words_are_cut_is_masked(pauses: Pauses) -> None:
    secret = "Zq7xnotshapedKEYvalue0123456789abcdefXYZ"
    words = "x" * 560 + secret + "y" * 100
    with (
        model_server(lambda request: fails(400, words)) as server,
        pytest.raises(RequestRejectedError) as caught,
    ):
        ask(chat(server.base_url, pauses, secrets=[secret]))
    assert secret[:8] not in str(caught.value)


def test_a_server_that_dribbles_is_given_up_after_the_timeout(pauses: Pauses) -> None:
    with model_server(lambda request: Reply(dribble=True)) as server:
        with pytest.raises(ModelServerError, match=r"did not answer within 0\.5 s"):
            ask(chat(server.base_url, pauses, timeout=0.5))
        assert len(server.requests) == 3


def test_half_a_surrogate_pair_in_a_reply_is_replaced(pauses: Pauses) -> None:
    with model_server(lambda request: says("sorry \ud83d please")) as server:
        assert ask(chat(server.base_url, pauses)).text == "sorry \ufffd please"


def test_a_call_that_nobody_asked_for_is_no_reply(pauses: Pauses) -> None:
    with (
        model_server(lambda request: calls_tool("lookup", "{}")) as server,
        pytest.raises(EmptyReplyError),
    ):
        ask(chat(server.base_url, pauses))


@pytest.mark.parametrize(
    "usage",
    [None, {"prompt_tokens": -5, "completion_tokens": None}, {"prompt_tokens": 10**30}, {}],
)
def test_odd_counts_of_tokens_do_not_fail_a_reply(usage: object, pauses: Pauses) -> None:
    body = {**says("hi").body, "usage": usage}
    with model_server(lambda request: Reply(body)) as server:
        model = chat(server.base_url, pauses)
        assert ask(model).text == "hi"
    assert model.usage.calls == 1
    assert model.usage.prompt_tokens >= 0


@pytest.mark.parametrize("body", [{"choices": [{}]}, {"choices": [{"message": None}]}, [1], "hi"])
def test_an_answer_of_the_wrong_shape_gives_words_and_no_traceback(
    body: object, pauses: Pauses
) -> None:
    with (
        model_server(lambda request: Reply(body)) as server,
        pytest.raises(ModelError) as caught,
    ):
        ask(chat(server.base_url, pauses))
    assert "Traceback" not in str(caught.value)
    assert "site-packages" not in str(caught.value)


def test_a_body_that_is_not_json_fails_as_the_servers_fault(pauses: Pauses) -> None:
    with (
        model_server(lambda request: Reply(b"<html>gateway</html>")) as server,
        pytest.raises((ModelServerError, ModelUnreachableError, EmptyReplyError)),
    ):
        ask(chat(server.base_url, pauses))


def test_a_hanging_server_is_given_up_after_the_timeout(pauses: Pauses) -> None:
    with model_server(lambda request: Reply(hang=True)) as server:
        with pytest.raises(ModelServerError):
            ask(chat(server.base_url, pauses, timeout=0.3))
        assert len(server.requests) == 3


def test_nothing_listening_is_told_apart_from_a_server_that_fails(pauses: Pauses) -> None:
    with pytest.raises(ModelUnreachableError, match="cannot be reached"):
        ask(chat(f"http://127.0.0.1:{free_port()}/v1", pauses))


def test_a_wrong_provider_is_refused_instead_of_scoring_zero() -> None:
    with pytest.raises(ModelNotFoundError, match="provider/name"):
        ChatModel("nobody/at-all")


def test_a_missing_key_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(ModelAuthError, match="OPENAI_API_KEY is not set"):
        ask(ChatModel("openai/gpt-4o-mini", retry=RetryPolicy(attempts=1)))


def test_a_retry_waits_as_long_as_the_server_asks(pauses: Pauses) -> None:
    replies = iter([fails(429, "wait", retry_after="7"), says("done")])
    with model_server(lambda request: next(replies)) as server:
        answer = ask(chat(server.base_url, pauses))
    assert answer.text == "done"
    assert pauses.seconds == [7.0]


def test_pauses_grow_and_never_pass_their_bounds() -> None:
    policy = RetryPolicy(base_seconds=1, max_seconds=5, max_retry_after_seconds=9)
    waits = [policy.pause(attempt, None) for attempt in range(1, 10)]
    assert all(0.5 <= wait <= 5 for wait in waits)
    assert policy.pause(1, 4000) == 9


def test_a_key_in_the_providers_words_is_masked(pauses: Pauses) -> None:
    secret = "very-secret-value-123"
    reply = fails(401, f"Incorrect API key provided: {secret} or sk-abcdef1234567890")
    with (
        model_server(lambda request: reply) as server,
        pytest.raises(ModelAuthError) as caught,
    ):
        ask(chat(server.base_url, pauses, secrets=[secret]))
    assert secret not in str(caught.value)
    assert "sk-abcdef" not in str(caught.value)
    assert "Incorrect API key" in str(caught.value)


def test_no_more_requests_are_in_flight_than_allowed(pauses: Pauses) -> None:
    with model_server(lambda request: says("x")) as server:
        model = chat(server.base_url, pauses, max_concurrency=2)

        async def many() -> list[Answer]:
            return await asyncio.gather(*(model.ask(HELLO) for _ in range(12)))

        assert len(asyncio.run(many())) == 12
        assert 1 <= server.most_at_once <= 2


def test_nothing_is_printed_on_standard_output(
    pauses: Pauses, capfd: pytest.CaptureFixture[str]
) -> None:
    with model_server(lambda request: fails(400)) as server, pytest.raises(RequestRejectedError):
        ask(chat(server.base_url, pauses))
    assert capfd.readouterr().out == ""
