"""The exact text that trains a reward model and is scored by it."""

import pytest

from stash_mcp.models import Message, Step
from stash_mcp.rendering import render_messages, render_reply, render_steps

SYSTEM = Step(role="system", content="Be kind.")
USER = Step(role="user", content="Where is KC-1?")
TOOL = Step(role="tool", content="shipped", tool_name="lookup", tool_call_id="c1")
REPLY = Step(role="assistant", content="It is on its way.")


def call(content: str = "", **fields: object) -> Step:
    values = {"tool_name": "lookup", "tool_input": {"order": "KC-1", "n": 2}, **fields}
    return Step(role="assistant", content=content, **values)  # type: ignore[arg-type]


def test_a_conversation_is_its_steps_joined_by_one_blank_line() -> None:
    assert render_steps([USER, call(), TOOL, REPLY]) == (
        "user: Where is KC-1?\n"
        "\n"
        'assistant → lookup({"order": "KC-1", "n": 2})\n'
        "\n"
        "tool: shipped\n"
        "\n"
        "assistant: It is on its way."
    )


def test_system_steps_are_left_out_wherever_they_stand() -> None:
    assert render_steps([SYSTEM, USER, SYSTEM, REPLY, SYSTEM]) == (
        "user: Where is KC-1?\n\nassistant: It is on its way."
    )
    assert render_steps([SYSTEM]) == ""


def test_a_call_with_text_has_the_text_line_first() -> None:
    assert render_steps([call("One moment.")]) == (
        'assistant: One moment.\nassistant → lookup({"order": "KC-1", "n": 2})'
    )


def test_non_ascii_input_is_escaped_and_non_ascii_content_is_not() -> None:
    step = call("Grüße", tool_name="näher", tool_input={"stadt": "Zürich", "e": "\U0001f600"})
    assert render_steps([step]) == (
        "assistant: Grüße\n"
        r'assistant → näher({"stadt": "Z\u00fcrich", "e": "\ud83d\ude00"})'
    )


@pytest.mark.parametrize(
    ("tool_input", "text"),
    [
        (None, "null"),
        ({}, "{}"),
        ({"b": 1, "a": [1.0, True, None]}, '{"b": 1, "a": [1.0, true, null]}'),
    ],
)
def test_the_input_is_json_in_its_own_order(tool_input: object, text: str) -> None:
    assert render_steps([call(tool_input=tool_input)]) == f"assistant → lookup({text})"


@pytest.mark.parametrize("name", [None, ""])
def test_a_step_without_a_tools_name_is_no_call(name: str | None) -> None:
    assert render_steps([call("Hm.", tool_name=name)]) == "assistant: Hm."


def test_only_an_assistant_calls_tools() -> None:
    assert render_steps([TOOL, Step(role="user", content="x", tool_name="f")]) == (
        "tool: shipped\n\nuser: x"
    )


def test_text_inside_a_step_is_kept_as_it_is() -> None:
    assert render_steps([Step(role="user", content=" a\n\n\tb\r\n")]) == "user:  a\n\n\tb\r\n"


def test_a_rated_step_is_rendered_with_what_came_before_it() -> None:
    steps = [SYSTEM, USER, call(), TOOL, REPLY]
    assert render_steps(steps[: 2 + 1]) == (
        'user: Where is KC-1?\n\nassistant → lookup({"order": "KC-1", "n": 2})'
    )


def test_a_reply_is_rendered_as_the_same_conversation_of_steps() -> None:
    messages = [Message(role="user", content="Hi"), Message(role="tool", content="x")]
    steps = [Step(role="user", content="Hi"), Step(role="tool", content="x"), REPLY]
    assert render_reply(messages, REPLY.content) == render_steps(steps)
    assert render_messages(messages) == "user: Hi\n\ntool: x"
