"""Which format a file is in, and the ids of its traces."""

import json
from typing import Any

import pytest

from stash_mcp.errors import TraceFormatError
from stash_mcp.traces.formats import FORMATS, parse_traces

USER = {"role": "user", "content": "Hi"}
REPLY = {"role": "assistant", "content": "Hello"}
CALL = {"type": "tool_use", "id": "t1", "name": "now", "input": {}}


def jsonl(*records: Any) -> bytes:
    return "".join(f"{json.dumps(record)}\n" for record in records).encode()


def ids(data: bytes) -> list[str]:
    return [trace.id for trace in parse_traces(data).traces]


def test_the_formats_stand_in_the_order_of_the_contract() -> None:
    contract = ["stash", "openai_chat", "anthropic_messages", "otel", "langfuse", "langsmith"]
    names = [candidate.name for candidate in FORMATS]
    assert names == [name for name in contract if name in names]


@pytest.mark.parametrize(
    ("record", "name"),
    [
        ({"steps": [USER]}, "stash"),
        ({"messages": [USER, REPLY]}, "openai_chat"),
        ({"system": "Be kind.", "messages": [USER, REPLY]}, "anthropic_messages"),
        (
            {"messages": [USER, {"role": "assistant", "content": [CALL]}]},
            "anthropic_messages",
        ),
    ],
)
def test_auto_finds_the_format(record: Any, name: str) -> None:
    assert parse_traces(jsonl(record)).format == name


def test_auto_looks_at_the_whole_file() -> None:
    with_call = {"messages": [USER, {"role": "assistant", "content": [CALL]}]}
    parsed = parse_traces(jsonl({"messages": [USER, REPLY]}, with_call))
    assert parsed.format == "anthropic_messages"
    assert len(parsed.traces) == 2


def test_auto_names_every_format_and_why_it_does_not_fit() -> None:
    with pytest.raises(TraceFormatError) as caught:
        parse_traces(jsonl({"steps": [USER]}, {"steps": [{"role": "bot", "content": ""}]}))
    assert caught.value.problem == (
        "The file fits none of the 3 formats. "
        "stash: Line 2, `steps[0].role`: 'bot' is not a role. "
        "openai_chat: Line 1, `messages`: is missing. "
        "anthropic_messages: Line 1, `messages`: is missing."
    )


def test_a_file_that_is_no_json_is_refused_before_any_format_is_tried() -> None:
    with pytest.raises(TraceFormatError) as caught:
        parse_traces(b"hello\n")
    assert caught.value.problem == "Line 1 is not JSON: expecting value at column 1."


def test_a_named_format_gives_its_own_error_alone() -> None:
    with pytest.raises(TraceFormatError) as caught:
        parse_traces(jsonl({"messages": [USER]}), "stash")
    assert caught.value.problem == "Line 1, `steps`: is missing."


def test_an_unknown_format_is_refused_with_the_known_ones() -> None:
    with pytest.raises(TraceFormatError) as caught:
        parse_traces(jsonl({"steps": [USER]}), "csv")
    assert str(caught.value) == (
        "There is no format 'csv'. Use one of: auto, stash, openai_chat, anthropic_messages."
    )


def test_one_bad_line_refuses_the_whole_file() -> None:
    with pytest.raises(TraceFormatError, match="Line 3"):
        parse_traces(jsonl({"steps": [USER]}, {"steps": [USER]}, {"steps": []}), "stash")


def test_an_id_is_kept_and_a_missing_one_is_made() -> None:
    [kept, made] = ids(jsonl({"id": "mine", "steps": [USER]}, {"steps": [USER]}))
    assert kept == "mine"
    assert made.startswith("t-")
    assert len(made) == 18
    assert set(made[2:]) <= set("0123456789abcdef")


def test_the_same_file_gives_the_same_ids() -> None:
    data = jsonl({"messages": [USER]}, {"messages": [USER, REPLY]})
    assert ids(data) == ids(data)


def test_equal_conversations_of_one_file_stay_separate_and_stable() -> None:
    three = ids(jsonl(*[{"messages": [USER, REPLY]}] * 3))
    assert len(set(three)) == 3
    assert ids(jsonl(*[{"messages": [USER, REPLY]}] * 2)) == three[:2]


def test_an_id_depends_on_content_and_not_on_the_place_in_the_file() -> None:
    first, second = {"messages": [USER]}, {"messages": [USER, REPLY]}
    assert ids(jsonl(first, second)) == ids(jsonl(second, first))[::-1]


@pytest.mark.parametrize(
    "other",
    [
        {"steps": [USER], "title": "A"},
        {"steps": [USER], "metadata": {"a": 1}},
        {"steps": [{**USER, "metadata": {"a": 1}}]},
        {"steps": [{**USER, "content": "Hi "}]},
    ],
)
def test_any_difference_in_content_gives_another_id(other: Any) -> None:
    assert ids(jsonl(other)) != ids(jsonl({"steps": [USER]}))


def test_a_made_id_that_another_line_claims_is_a_repeated_id() -> None:
    [made] = ids(jsonl({"steps": [USER]}))
    with pytest.raises(TraceFormatError, match=f"Lines 1 and 2 have the same id '{made}'"):
        parse_traces(jsonl({"steps": [USER]}, {"id": made, "steps": [USER]}), "stash")
