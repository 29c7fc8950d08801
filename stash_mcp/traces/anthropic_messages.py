"""`anthropic_messages`: JSONL of `{"system": ..., "messages": [...]}` of Anthropic's Messages API.

Blocks `text`, `tool_use`, `tool_result` and `thinking` are read; any other becomes `[type]`, and
redacted thinking is dropped.
"""

from collections.abc import Iterator, Sequence

from stash_mcp.errors import TraceFormatError
from stash_mcp.models import Role, Step
from stash_mcp.traces.blocks import content_steps, content_text, thinking_steps
from stash_mcp.traces.conversation import Conversation, fill_tool_names
from stash_mcp.traces.payload import Row
from stash_mcp.traces.record import Record, record_of

_ROLES: dict[str, Role] = {"user": "user", "assistant": "assistant"}


def read(rows: Sequence[Row]) -> Iterator[Conversation]:
    for row in rows:
        record = record_of(row, TraceFormatError)
        steps = _system_steps(record)
        for message in record.records("messages"):
            steps += _message_steps(message)
        yield Conversation(row.line, fill_tool_names(steps))


def _system_steps(record: Record) -> list[Step]:
    text = content_text(record, "system")
    return [Step(role="system", content=text)] if text else []


def _message_steps(message: Record) -> list[Step]:
    name = message.text("role")
    if name not in _ROLES:
        raise message.wrong(
            "role",
            f"{name[:40]!r} is not a role of this format",
            "Use user or assistant; a system prompt belongs in `system`.",
        )
    if message.values.get("content") is None:
        raise message.wrong("content", "is missing", "Give a string or a list of blocks.")
    if message.values["content"] == "":
        return [Step(role=_ROLES[name], content="")]
    return content_steps(message, _ROLES[name], _block_steps)


def _block_steps(block: Record, kind: str) -> list[Step] | None:
    match kind:
        case "tool_use":
            return [_tool_call(block)]
        case "tool_result":
            return [_tool_result(block)]
        case "thinking":
            return thinking_steps(block.text("thinking"))
        case "redacted_thinking":
            return []
        case _:
            return None


def _tool_call(block: Record) -> Step:
    return Step(
        role="assistant",
        content="",
        tool_name=block.text("name"),
        tool_input=block.record("input").values,
        tool_call_id=block.optional_text("id"),
    )


def _tool_result(block: Record) -> Step:
    return Step(
        role="tool",
        content=content_text(block, "content"),
        tool_call_id=block.optional_text("tool_use_id"),
        metadata={"is_error": True} if block.flag("is_error") else {},
    )
