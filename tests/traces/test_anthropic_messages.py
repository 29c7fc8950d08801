"""Messages of Anthropic's API in: blocks, thinking, tool pairs, and what is refused."""

import json
from typing import Any

import pytest

from stash_mcp.errors import TraceFormatError
from stash_mcp.models import Step
from stash_mcp.traces.formats import parse_traces

USER = {"role": "user", "content": "Hi"}
CALL = {"type": "tool_use", "id": "t1", "name": "lookup", "input": {"order": "KC-1"}}


def steps_of(*messages: Any, **fields: Any) -> list[Step]:
    data = json.dumps({**fields, "messages": messages}).encode()
    return list(parse_traces(data, "anthropic_messages").traces[0].steps)


def problem_of(*messages: Any, **fields: Any) -> str:
    with pytest.raises(TraceFormatError) as caught:
        steps_of(*messages, **fields)
    return caught.value.problem


def says(*blocks: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": list(blocks)}


def answers(content: Any, **fields: Any) -> dict[str, Any]:
    block = {"type": "tool_result", "tool_use_id": "t1", "content": content, **fields}
    return {"role": "user", "content": [block]}


def test_a_call_and_its_result_become_a_pair_of_steps() -> None:
    text = {"type": "text", "text": "One moment."}
    assert steps_of(USER, says(text, CALL), answers("shipped")) == [
        Step(role="user", content="Hi"),
        Step(role="assistant", content="One moment."),
        Step(
            role="assistant",
            content="",
            tool_name="lookup",
            tool_input={"order": "KC-1"},
            tool_call_id="t1",
        ),
        Step(role="tool", content="shipped", tool_name="lookup", tool_call_id="t1"),
    ]


def test_a_failed_result_is_marked() -> None:
    steps = steps_of(USER, says(CALL), answers("no such order", is_error=True))
    assert steps[-1].metadata == {"is_error": True}
    assert steps_of(USER, says(CALL), answers("fine", is_error=False))[-1].metadata == {}


def test_blocks_of_a_result_are_joined_by_lines() -> None:
    blocks = [{"type": "text", "text": "a"}, {"type": "image", "source": {}}]
    assert steps_of(USER, says(CALL), answers(blocks))[-1].content == "a\n[image]"
    assert steps_of(USER, says(CALL), answers(None))[-1].content == ""


def test_what_the_user_says_after_a_result_is_a_user_step() -> None:
    message = answers("shipped")
    message["content"].append({"type": "text", "text": "Thanks"})
    roles = [step.role for step in steps_of(USER, says(CALL), message)]
    assert roles == ["user", "assistant", "tool", "user"]


@pytest.mark.parametrize(
    "system",
    ["Be kind.\nBe brief.", [{"type": "text", "text": "Be kind."}, "Be brief."]],
)
def test_the_system_prompt_is_the_first_step(system: Any) -> None:
    assert steps_of(USER, system=system)[0] == Step(role="system", content="Be kind.\nBe brief.")


@pytest.mark.parametrize("system", ["", None, []])
def test_an_empty_system_prompt_is_no_step(system: Any) -> None:
    assert [step.role for step in steps_of(USER, system=system)] == ["user"]


def test_thinking_is_marked_and_empty_or_redacted_thinking_dropped() -> None:
    message = says(
        {"type": "thinking", "thinking": "Hm.", "signature": "s"},
        {"type": "thinking", "thinking": "", "signature": "s"},
        {"type": "redacted_thinking", "data": "x"},
    )
    assert steps_of(USER, message)[1:] == [
        Step(role="assistant", content="Hm.", metadata={"thinking": True})
    ]


@pytest.mark.parametrize("kind", ["image", "document", "server_tool_use", "web_search_tool_result"])
def test_other_blocks_become_their_type(kind: str) -> None:
    assert steps_of({"role": "user", "content": [{"type": kind}]}) == [
        Step(role="user", content=f"[{kind}]")
    ]


@pytest.mark.parametrize(
    ("message", "problem"),
    [
        (
            {"role": "system", "content": ""},
            "`messages[1].role`: 'system' is not a role of this format",
        ),
        (
            {"role": "tool", "content": ""},
            "`messages[1].role`: 'tool' is not a role of this format",
        ),
        ({"role": "user"}, "`messages[1].content`: is missing"),
        (
            {"role": "user", "content": {}},
            "`messages[1].content`: it is neither text nor content blocks",
        ),
        (says({**CALL, "input": "x"}), "`messages[1].content[0].input`: 'x' is not an object"),
        (says({**CALL, "input": None}), "`messages[1].content[0].input`: null is not an object"),
        (says({**CALL, "name": None}), "`messages[1].content[0].name`: null is not a string"),
        (
            answers("", is_error="yes"),
            "`messages[1].content[0].is_error`: 'yes' is not true or false",
        ),
        (
            says({"type": "thinking", "thinking": 1}),
            "`messages[1].content[0].thinking`: the number 1 is not a string",
        ),
    ],
)
def test_a_message_that_cannot_be_read_is_named(message: Any, problem: str) -> None:
    assert problem_of(USER, message) == f"Line 1, {problem}."


def test_a_system_prompt_of_the_wrong_type_is_named() -> None:
    assert problem_of(USER, system=7) == (
        "Line 1, `system`: it is neither text nor content blocks."
    )


def test_a_conversation_of_only_dropped_thinking_has_no_steps() -> None:
    message = says({"type": "redacted_thinking", "data": "x"})
    assert problem_of(message) == "Line 1: the conversation has no steps."
