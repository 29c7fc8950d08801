"""The Stash Trace Format in, and out again."""

import json
from typing import Any

import pytest

from stash_mcp.errors import TraceFormatError
from stash_mcp.models import Step, Trace
from stash_mcp.traces.formats import parse_traces
from stash_mcp.traces.stash import export_trace

USER = {"role": "user", "content": "Hi"}


def parse(*records: Any) -> tuple[Trace, ...]:
    data = "\n".join(json.dumps(record) for record in records).encode()
    return parse_traces(data, "stash").traces


def problem_of(*records: Any) -> str:
    with pytest.raises(TraceFormatError) as caught:
        parse(*records)
    assert "Nothing was stored." in caught.value.fix
    return caught.value.problem


def test_every_field_is_kept() -> None:
    step = {
        "role": "assistant",
        "content": "Looking it up.",
        "tool_name": "lookup",
        "tool_input": {"order": "KC-1", "exact": True, "weight": 1.0, "tags": []},
        "tool_call_id": "c1",
        "metadata": {"timestamp": "2026-01-01T00:00:00Z"},
    }
    record = {"id": "a", "title": "Parcel", "metadata": {"lang": "de"}, "steps": [USER, step]}
    [trace] = parse(record)
    assert trace.model_dump(mode="json") == {
        **record,
        "steps": [
            {**USER, "tool_name": None, "tool_input": None, "tool_call_id": None, "metadata": {}},
            step,
        ],
    }
    assert isinstance(trace.steps[1].tool_input["weight"], float)  # type: ignore[index]


def test_null_stands_for_an_absent_field() -> None:
    absent = dict.fromkeys(["tool_name", "tool_input", "tool_call_id", "metadata"])
    [with_null] = parse({"id": "a", "title": None, "metadata": None, "steps": [USER | absent]})
    assert [with_null] == list(parse({"id": "a", "steps": [USER]}))


def test_an_empty_tool_input_is_not_an_absent_one() -> None:
    call = {"role": "assistant", "content": "", "tool_name": "now", "tool_input": {}}
    [trace] = parse({"steps": [USER, call]})
    assert trace.steps[1].tool_input == {}


def test_unknown_keys_are_ignored() -> None:
    [trace] = parse({"id": "a", "extra": 1, "steps": [{**USER, "index": 0}]})
    assert trace == Trace(id="a", steps=(Step(role="user", content="Hi"),))


@pytest.mark.parametrize(
    ("record", "problem"),
    [
        ({"steps": [USER, {"role": "bot", "content": ""}]}, "`steps[1].role`: 'bot' is not a role"),
        ({"steps": [{"content": ""}]}, "`steps[0].role`: is missing"),
        ({"steps": [{"role": "user"}]}, "`steps[0].content`: is missing"),
        (
            {"steps": [{"role": "user", "content": None}]},
            "`steps[0].content`: null is not a string",
        ),
        (
            {"steps": [{"role": "user", "content": ["a"]}]},
            "`steps[0].content`: an array is not a string",
        ),
        ({"steps": [{**USER, "tool_input": "x"}]}, "`steps[0].tool_input`: 'x' is not an object"),
        (
            {"steps": [{**USER, "tool_input": [1]}]},
            "`steps[0].tool_input`: an array is not an object",
        ),
        (
            {"steps": [{**USER, "tool_name": 7}]},
            "`steps[0].tool_name`: the number 7 is not a string",
        ),
        (
            {"steps": [{**USER, "metadata": 1}]},
            "`steps[0].metadata`: the number 1 is not an object",
        ),
        ({"steps": ["Hi"]}, "`steps[0]`: 'Hi' is not an object"),
        ({"steps": {}}, "`steps`: an object is not an array of objects"),
        ({"id": "a"}, "`steps`: is missing"),
        ({"id": 7, "steps": [USER]}, "`id`: the number 7 is not a string"),
        ({"title": True, "steps": [USER]}, "`title`: true is not a string"),
        ({"metadata": [], "steps": [USER]}, "`metadata`: an array is not an object"),
        ({"id": " ", "steps": [USER]}, "`id`: it is blank or over 500 characters"),
        ({"id": "x" * 501, "steps": [USER]}, "`id`: it is blank or over 500 characters"),
    ],
)
def test_a_wrong_field_is_named_with_its_line(record: Any, problem: str) -> None:
    assert problem_of({"steps": [USER]}, record) == f"Line 2, {problem}."


@pytest.mark.parametrize(
    ("line", "kind"),
    [([], "an array"), ("a", "a string"), (3, "the number 3"), (None, "null"), (False, "false")],
)
def test_a_line_that_is_not_an_object_is_named(line: Any, kind: str) -> None:
    assert problem_of({"steps": [USER]}, line) == f"Line 2 is {kind}, not an object."


def test_a_trace_without_steps_is_refused() -> None:
    assert problem_of({"steps": [USER]}, {"steps": []}) == "Line 2: the conversation has no steps."


def test_a_trace_with_only_system_steps_is_refused() -> None:
    system = {"role": "system", "content": "Be kind."}
    assert problem_of({"steps": [USER]}, {"steps": [system, system]}) == (
        "Line 2: the conversation has only system steps."
    )


def test_a_repeated_id_is_refused_with_both_lines() -> None:
    traces = [{"id": name, "steps": [USER]} for name in ("a", "b", "a")]
    assert problem_of(*traces) == "Lines 1 and 3 have the same id 'a'."


def test_long_wrong_values_are_shortened_in_the_message() -> None:
    assert len(problem_of({"steps": [{"role": "r" * 10_000, "content": ""}]})) < 120


def test_the_exported_line_is_the_format_without_absent_fields() -> None:
    trace = Trace(id="a", steps=(Step(role="user", content="Grüße"),))
    assert export_trace(trace) == '{"id": "a", "steps": [{"role": "user", "content": "Grüße"}]}'


def test_the_exported_line_has_nothing_that_splits_lines() -> None:
    text = "a\u2028b\u2029c\u0085d\x0be\x1cf\ng"
    line = export_trace(Trace(id="a", steps=(Step(role="user", content=text),)))
    assert line.splitlines() == [line]
    assert parse_traces(line.encode()).traces[0].steps[0].content == text
