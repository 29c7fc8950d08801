"""Ratings, comments and quotes that do not fit, given one by one or in a file, at both doors."""

import json
from typing import Any

import pytest
from support.doors import (
    Case,
    Doors,
    at_commands,
    at_tools,
    furnish,
    refused_by_command,
    refused_by_tool,
)
from support.staging import START, Stage, conversation, jsonl

TALK = {
    "id": "s-1",
    "steps": [
        {"role": "system", "content": "You help."},
        {"role": "user", "content": "Where is my parcel?"},
        {"role": "assistant", "content": "Tell me the number."},
    ],
}


def with_a_system_step(stage: Stage) -> None:
    furnish(stage)
    stage.backend.import_traces(jsonl([TALK]))


def note(**fields: Any) -> bytes:
    values = {"trace_id": "s-1", "created_at": START.isoformat(), **fields}
    return json.dumps(values).encode() + b"\n"


GOOD = note(rating=1, comment="Good.")

RATED_SYSTEM = ("step 0 of trace 's-1' rates a system step", "Comment on it without a rating")
MISQUOTED = (
    "step 1 of trace 's-1' quotes 'my package', which that step's content does not contain",
    "Copy the passage from the step exactly",
)


def single(id: str, arguments: dict[str, Any], options: tuple[str, ...], *says: str) -> Case:
    return Case(
        id,
        says,
        tool="annotate_trace",
        arguments={"trace_id": "s-1", **arguments},
        command=("annotate", "s-1", *options),
        library=with_a_system_step,
    )


def in_file(id: str, fields: dict[str, Any], *says: str) -> Case:
    """A good annotation, then the bad one."""
    return Case(
        f"{id}, in a file",
        says,
        tool="import_traces",
        arguments={"annotations_path": "notes.jsonl"},
        command=("import", "--annotations", "notes.jsonl"),
        files={"notes.jsonl": GOOD + note(**fields)},
        library=with_a_system_step,
    )


def with_conversations(id: str, notes: bytes, *says: str) -> Case:
    """Good conversations, one new and one changed, with bad annotations."""
    changed = {**TALK, "steps": [*TALK["steps"], {"role": "user", "content": "17."}]}
    return Case(
        f"{id}, with conversations",
        says,
        tool="import_traces",
        arguments={"path": "talks.jsonl", "annotations_path": "notes.jsonl"},
        command=("import", "talks.jsonl", "--annotations", "notes.jsonl"),
        files={"talks.jsonl": jsonl([changed, conversation("new")]), "notes.jsonl": notes},
        library=with_a_system_step,
    )


CASES = [
    single(
        "a rating on a system step",
        {"step": 0, "rating": "up"},
        ("--step", "0", "--rating", "up"),
        *RATED_SYSTEM,
    ),
    single(
        "a quote that is not in the step",
        {"step": 1, "comment": "Which?", "quote": "my package"},
        ("--step", "1", "--comment", "Which?", "--quote", "my package"),
        *MISQUOTED,
    ),
    single(
        "a quote without a step",
        {"comment": "Which?", "quote": "my parcel"},
        ("--comment", "Which?", "--quote", "my parcel"),
        "trace 's-1' quotes a passage without naming its step",
        "Give its step_index",
    ),
    single(
        "a step that is not there",
        {"step": 3, "rating": "up"},
        ("--step", "3", "--rating", "up"),
        "step 3 of trace 's-1' does not fit: there are 3 steps",
        "from 0 to 2",
    ),
    single("nothing said", {}, (), "has neither a rating nor a comment", "Give one or both"),
    in_file("a rating on a system step", {"step_index": 0, "rating": 1}, *RATED_SYSTEM),
    in_file(
        "a quote that is not in the step",
        {"step_index": 1, "comment": "Which?", "quote": {"text": "my package"}},
        *MISQUOTED,
    ),
    in_file(
        "a trace that is not there",
        {"trace_id": "s-2", "rating": 1},
        "There is no trace 's-2'",
        "List the traces",
    ),
    in_file(
        "a rating that is none", {"rating": 5}, "Line 2, `rating`: 5 is not a rating", "Use 1, -1"
    ),
    in_file(
        "a time that is none",
        {"rating": 1, "created_at": "yesterday"},
        "Line 2, `created_at`: 'yesterday' is not a time",
        "Use ISO 8601",
    ),
    with_conversations(
        "a rating on a system step", GOOD + note(step_index=0, rating=1), *RATED_SYSTEM
    ),
    with_conversations(
        "a trace that is not there",
        GOOD + note(trace_id="s-2", rating=1),
        "There is no trace 's-2'",
        "List the traces",
    ),
    with_conversations(
        "a truncated last line",
        GOOD + note(rating=1)[:-9],
        "Line 2 is cut off",
        "Export or copy the file again",
    ),
    with_conversations("an empty file", b"", "The file is empty", "Export it again"),
]


@pytest.mark.anyio
@at_tools(CASES)
async def test_the_tool_refuses_what_does_not_fit_and_stores_none_of_it(
    case: Case, doors: Doors
) -> None:
    await refused_by_tool(case, doors)


@at_commands(CASES)
def test_the_command_refuses_what_does_not_fit_and_stores_none_of_it(
    case: Case, doors: Doors
) -> None:
    refused_by_command(case, doors)
