"""`stash`: the Stash Trace Format, JSONL, one trace a line. Also how traces are exported.

Keys that the format does not have are ignored; null stands for an absent optional field.
"""

import json
from collections.abc import Iterator, Sequence
from typing import Any, cast, get_args

from stash_mcp.errors import TraceFormatError
from stash_mcp.models import Role, Step, Trace
from stash_mcp.traces.conversation import Conversation
from stash_mcp.traces.payload import Row
from stash_mcp.traces.record import Record, record_of

# Valid inside JSON strings, but many readers split lines at them.
_LINE_BREAKS = {"\u0085": "\\u0085", "\u2028": "\\u2028", "\u2029": "\\u2029"}


def read(rows: Sequence[Row]) -> Iterator[Conversation]:
    for row in rows:
        record = record_of(row, TraceFormatError)
        yield Conversation(
            line=row.line,
            steps=tuple(_step(step) for step in record.records("steps")),
            id=record.optional_text("id"),
            title=record.optional_text("title"),
            metadata=record.optional_object("metadata") or {},
        )


def _step(record: Record) -> Step:
    return Step(
        role=_role(record),
        content=record.text("content"),
        tool_name=record.optional_text("tool_name"),
        tool_input=record.optional_object("tool_input"),
        tool_call_id=record.optional_text("tool_call_id"),
        metadata=record.optional_object("metadata") or {},
    )


def _role(record: Record) -> Role:
    role = record.text("role")
    if role not in get_args(Role):
        raise record.wrong(
            "role", f"{role[:40]!r} is not a role", "Use system, user, assistant or tool."
        )
    return cast(Role, role)


def export_trace(trace: Trace) -> str:
    """The trace as one line without its line end; reading it gives an equal trace."""
    fields = trace.model_dump(exclude_defaults=True, exclude={"steps"})
    steps = [step.model_dump(exclude_defaults=True) for step in trace.steps]
    return json_line({**fields, "steps": steps})


def json_line(fields: dict[str, Any]) -> str:
    """One JSON object without any character that some reader takes for a line end."""
    line = json.dumps(fields, ensure_ascii=False, allow_nan=False)
    for character, escape in _LINE_BREAKS.items():
        line = line.replace(character, escape)
    return line
