import asyncio
import json
from collections.abc import Callable

import pytest
from support.model_server import Reply, Request, calls_tool, fails, model_server, says

from stash_mcp.errors import ModelAnswerError, ModelAuthError
from stash_mcp.models import Example, Message
from stash_mcp.optimization.identity import Identity, ModelIdentifier
from stash_mcp.optimization.llm import ChatModel

EXAMPLE = Example(
    trace_id="t",
    system="You help.",
    messages=(Message(role="user", content="Where is my parcel?"),),
    feedback=("Ask for the order number.",),
)
GOOD = json.dumps({"name": "parcel-help", "description": "Helps with parcels."})


def identify(script: Callable[[Request], Reply]) -> tuple[Identity, list[Request]]:
    with model_server(script) as server:
        model = ChatModel("openai/stub", server.base_url)
        found = asyncio.run(ModelIdentifier(model).identify([EXAMPLE]))
        return found, server.requests


def in_turn(*replies: Reply) -> Callable[[Request], Reply]:
    waiting = iter(replies)
    return lambda request: next(waiting)


def test_the_forced_tool_call_gives_name_and_description() -> None:
    found, requests = identify(in_turn(calls_tool("name_skill", GOOD)))
    assert found == Identity("parcel-help", "Helps with parcels.")
    prompt = requests[0]["messages"][0]["content"]
    assert "Where is my parcel?" in prompt
    assert "Ask for the order number." in prompt
    assert requests[0]["tool_choice"]["function"]["name"] == "name_skill"


def test_a_broken_rule_is_told_and_asked_again() -> None:
    bad = json.dumps({"name": "Parcel Help", "description": "Helps."})
    found, requests = identify(in_turn(calls_tool("name_skill", bad), calls_tool("x", GOOD)))
    assert found.name == "parcel-help"
    assert "cannot be used" in requests[1]["messages"][-1]["content"]
    assert "name" in requests[1]["messages"][-1]["content"]


def test_a_server_without_tools_is_asked_for_json_text() -> None:
    replies = in_turn(says("I would call it parcel help."), says(f"Sure:\n```json\n{GOOD}\n```"))
    found, requests = identify(replies)
    assert found.name == "parcel-help"
    assert "tools" in requests[0]
    assert "tools" not in requests[1]
    assert "JSON object" in requests[1]["messages"][0]["content"]


def test_a_server_that_rejects_tools_is_asked_for_json_text() -> None:
    found, requests = identify(in_turn(fails(400, "tools are not supported"), says(GOOD)))
    assert found.name == "parcel-help"
    assert len(requests) == 2


def test_nonsense_three_times_is_given_up_with_the_reason() -> None:
    with model_server(lambda request: says("john-john-john")) as server:
        identifier = ModelIdentifier(ChatModel("openai/stub", server.base_url))
        with pytest.raises(ModelAnswerError, match="skill_name and skill_description") as caught:
            asyncio.run(identifier.identify([EXAMPLE]))
    assert "3 answers" in caught.value.problem
    # One answer with the tool, then JSON text: three judged answers in all.
    assert len(server.requests) == 4


@pytest.mark.parametrize(
    "arguments",
    ["[]", "{", '{"name": 3, "description": "x"}', '{"name": "a"}', "{}", '{"name": null}'],
)
def test_arguments_of_the_wrong_shape_are_told_and_asked_again(arguments: str) -> None:
    found, requests = identify(
        in_turn(calls_tool("name_skill", arguments), calls_tool("name_skill", GOOD))
    )
    assert found.name == "parcel-help"
    assert "cannot be used" in requests[1]["messages"][-1]["content"]


def test_an_error_of_the_model_is_not_an_answer() -> None:
    with pytest.raises(ModelAuthError):
        identify(lambda request: fails(401))


def test_long_conversations_keep_the_request_short() -> None:
    long = EXAMPLE.model_copy(
        update={"messages": (Message(role="user", content="x" * 500_000),), "feedback": ()}
    )
    with model_server(lambda request: calls_tool("name_skill", GOOD)) as server:
        model = ChatModel("openai/stub", server.base_url)
        asyncio.run(ModelIdentifier(model).identify([long] * 100))
        assert len(server.requests[0]["messages"][0]["content"]) < 40_000
