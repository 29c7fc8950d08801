"""Chat completions in: calls and results, content parts, and what is refused."""

import json
from typing import Any

import pytest

from stash_mcp.errors import TraceFormatError
from stash_mcp.models import Step
from stash_mcp.traces.formats import parse_traces

USER = {"role": "user", "content": "Hi"}


def steps_of(*messages: Any) -> list[Step]:
    data = json.dumps({"messages": messages}).encode()
    return list(parse_traces(data, "openai_chat").traces[0].steps)


def problem_of(*messages: Any) -> str:
    with pytest.raises(TraceFormatError) as caught:
        steps_of(*messages)
    return caught.value.problem


def call(arguments: Any, call_id: str = "c1", name: str = "lookup") -> dict[str, Any]:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def asks(*calls: Any, content: Any = None) -> dict[str, Any]:
    return {"role": "assistant", "content": content, "tool_calls": list(calls)}


def test_a_call_and_its_result_become_a_pair_of_steps() -> None:
    result = {"role": "tool", "tool_call_id": "c1", "content": "shipped"}
    assert steps_of(USER, asks(call('{"order": "KC-1"}')), result) == [
        Step(role="user", content="Hi"),
        Step(
            role="assistant",
            content="",
            tool_name="lookup",
            tool_input={"order": "KC-1"},
            tool_call_id="c1",
        ),
        Step(role="tool", content="shipped", tool_name="lookup", tool_call_id="c1"),
    ]


def test_text_beside_calls_is_a_step_of_its_own_before_them() -> None:
    steps = steps_of(USER, asks(call("{}", "c1"), call("{}", "c2"), content="One moment."))
    assert [(step.content, step.tool_call_id) for step in steps[1:]] == [
        ("One moment.", None),
        ("", "c1"),
        ("", "c2"),
    ]


def test_results_of_parallel_calls_are_named_after_their_calls() -> None:
    results = [{"role": "tool", "tool_call_id": name, "content": ""} for name in ("c2", "c1")]
    steps = steps_of(USER, asks(call("{}", "c1", "a"), call("{}", "c2", "b")), *results)
    assert [step.tool_name for step in steps[3:]] == ["b", "a"]


def test_a_call_id_that_is_used_again_means_the_latest_call() -> None:
    result = {"role": "tool", "tool_call_id": "c1", "content": ""}
    steps = steps_of(USER, asks(call("{}", name="a")), result, asks(call("{}", name="b")), result)
    assert [step.tool_name for step in steps if step.role == "tool"] == ["a", "b"]


def test_a_result_keeps_its_own_name_and_may_lack_a_call() -> None:
    steps = steps_of(
        USER,
        {"role": "tool", "tool_call_id": "c1", "content": "", "name": "own"},
        {"role": "tool", "tool_call_id": "lost", "content": ""},
    )
    assert [step.tool_name for step in steps[1:]] == ["own", None]


def test_developer_is_system() -> None:
    assert steps_of({"role": "developer", "content": "Be kind."}, USER)[0] == Step(
        role="system", content="Be kind."
    )


@pytest.mark.parametrize("content", [None, "", []])
def test_a_message_without_content_or_calls_stays_as_an_empty_step(content: Any) -> None:
    assert steps_of(USER, {"role": "assistant", "content": content})[1:] == [
        Step(role="assistant", content="")
    ]


def test_content_may_be_missing_beside_calls() -> None:
    message = asks(call("{}"))
    del message["content"]
    assert [step.tool_name for step in steps_of(USER, message)[1:]] == ["lookup"]


def test_each_content_part_is_a_step_and_others_than_text_become_their_type() -> None:
    parts = [
        {"type": "text", "text": "What is this?"},
        {"type": "image_url", "image_url": {"url": "data:..."}},
        {"type": "input_audio", "input_audio": {}},
    ]
    assert steps_of({"role": "user", "content": parts}) == [
        Step(role="user", content=text)
        for text in ("What is this?", "[image_url]", "[input_audio]")
    ]


def test_parts_of_a_tool_result_are_joined_by_lines() -> None:
    parts = [{"type": "text", "text": "a"}, {"type": "image_url"}, {"type": "text", "text": "b"}]
    steps = steps_of(USER, {"role": "tool", "tool_call_id": "c1", "content": parts})
    assert steps[1].content == "a\n[image_url]\nb"


def test_a_refusal_is_what_the_assistant_said() -> None:
    as_field = {"role": "assistant", "content": None, "refusal": "I can't."}
    as_part = {"role": "assistant", "content": [{"type": "refusal", "refusal": "I can't."}]}
    assert steps_of(USER, as_field) == steps_of(USER, as_part)
    assert steps_of(USER, as_part)[1].content == "I can't."


def test_thinking_parts_are_marked_and_empty_or_redacted_ones_dropped() -> None:
    parts = [
        {"type": "thinking", "thinking": "Hm."},
        {"type": "thinking", "thinking": " "},
        {"type": "redacted_thinking", "data": "x"},
        {"type": "text", "text": "Yes."},
    ]
    assert steps_of(USER, {"role": "assistant", "content": parts})[1:] == [
        Step(role="assistant", content="Hm.", metadata={"thinking": True}),
        Step(role="assistant", content="Yes."),
    ]


@pytest.mark.parametrize(
    ("arguments", "tool_input"),
    [
        ('{"a": {"b": [1, 2.0, null]}}', {"a": {"b": [1, 2.0, None]}}),
        ({"a": 1}, {"a": 1}),
        ("", {}),
        ("  ", {}),
        (None, {}),
    ],
)
def test_arguments_become_the_tool_input(arguments: Any, tool_input: Any) -> None:
    step = steps_of(USER, asks(call(arguments)))[1]
    assert (step.tool_input, step.metadata) == (tool_input, {})


@pytest.mark.parametrize(
    "arguments",
    [
        "[1]",
        '"x"',
        "7",
        '{"a": ',
        "order=KC-1",
        '{"a": NaN}',
        '{"a": 1e999}',
        r'{"a": "\u0000"}',
        '{"a":' * 200 + "1" + "}" * 200,
        '{"a": ' + "9" * 5000 + "}",
    ],
    ids=lambda text: text[:20],
)
def test_arguments_that_are_no_object_are_kept_as_text_and_marked(arguments: str) -> None:
    step = steps_of(USER, asks(call(arguments)))[1]
    assert step.tool_input == {"arguments": arguments}
    assert step.metadata == {"invalid_arguments": True}


def test_a_custom_tool_call_keeps_its_text() -> None:
    custom = {"id": "c1", "type": "custom", "custom": {"name": "sql", "input": "SELECT 1"}}
    step = steps_of(USER, asks(custom))[1]
    assert (step.tool_name, step.tool_input) == ("sql", {"input": "SELECT 1"})


@pytest.mark.parametrize(
    ("message", "problem"),
    [
        ({"role": "bot", "content": ""}, "`messages[1].role`: 'bot' is not a role of this format"),
        (
            {"role": "function", "name": "a", "content": ""},
            "`messages[1].role`: 'function' is not a role of this format",
        ),
        ({"content": "Hi"}, "`messages[1].role`: is missing"),
        (
            {"role": "user", "content": 7},
            "`messages[1].content`: it is neither text nor content blocks",
        ),
        (
            {"role": "user", "content": [7]},
            "`messages[1].content[0]`: it is neither text nor content blocks",
        ),
        ({"role": "user", "content": [{}]}, "`messages[1].content[0].type`: is missing"),
        (
            {"role": "user", "content": [{"type": "text"}]},
            "`messages[1].content[0].text`: is missing",
        ),
        (
            {"role": "user", "content": "", "tool_calls": [call("{}")]},
            "`messages[1].tool_calls`: a user message cannot call tools",
        ),
        (asks("x"), "`messages[1].tool_calls[0]`: 'x' is not an object"),
        (asks({"id": "c1"}), "`messages[1].tool_calls[0].function`: is missing"),
        (
            asks(call([1])),
            "`messages[1].tool_calls[0].function.arguments`: an array is not a string",
        ),
        (
            {"role": "assistant", "content": None, "function_call": {"name": "a"}},
            "`messages[1].function_call`: the older form of a tool call is not read",
        ),
        ("Hi", "`messages[1]`: 'Hi' is not an object"),
    ],
)
def test_a_message_that_cannot_be_read_is_named(message: Any, problem: str) -> None:
    assert problem_of(USER, message) == f"Line 1, {problem}."


def test_anthropic_blocks_are_refused_with_the_format_that_reads_them() -> None:
    message = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t"}]}
    with pytest.raises(TraceFormatError, match="anthropic_messages"):
        steps_of(message)


def test_a_conversation_of_only_developer_messages_is_refused() -> None:
    assert problem_of({"role": "developer", "content": "x"}) == (
        "Line 1: the conversation has only system steps."
    )


def test_one_array_of_messages_is_one_conversation() -> None:
    data = json.dumps([USER, {"role": "assistant", "content": "Hello"}], indent=2).encode()
    parsed = parse_traces(data)
    assert parsed.format == "openai_chat"
    assert [len(trace.steps) for trace in parsed.traces] == [2]


def test_a_second_array_is_a_line_that_is_not_an_object() -> None:
    line = json.dumps([USER])
    with pytest.raises(TraceFormatError, match="Line 1 is an array, not an object"):
        parse_traces(f"{line}\n{line}\n".encode(), "openai_chat")
