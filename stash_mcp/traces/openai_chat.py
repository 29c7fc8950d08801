"""`openai_chat`: messages of OpenAI's chat completions. JSONL of `{"messages": [...]}`, or one
JSON array of messages. `developer` is read as system.

Tool arguments arrive as a string that a model wrote. When that is not a JSON object the call
still happened, and may be just what a reviewer wants to comment on: the string is kept whole as
`{"arguments": "..."}` and the step's metadata says `invalid_arguments`.
"""

from collections.abc import Iterator, Sequence

from pydantic import JsonValue

from stash_mcp.errors import TraceFormatError
from stash_mcp.models import Role, Step
from stash_mcp.traces.blocks import content_steps, content_text, thinking_steps
from stash_mcp.traces.conversation import Conversation, fill_tool_names
from stash_mcp.traces.payload import Row, parse_json
from stash_mcp.traces.record import Record, record_of

_ROLES: dict[str, Role] = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "assistant": "assistant",
    "tool": "tool",
}
_ANTHROPIC_BLOCKS = {"tool_use", "tool_result"}


def read(rows: Sequence[Row]) -> Iterator[Conversation]:
    for row in rows:
        is_array = isinstance(row.value, list) and len(rows) == 1
        record = record_of(
            Row(row.line, {"messages": row.value}) if is_array else row, TraceFormatError
        )
        if "system" in record.values:
            raise record.wrong(
                "system", "chat completions have no such field", "Try anthropic_messages."
            )
        steps = [step for m in record.records("messages") for step in _message_steps(m)]
        yield Conversation(row.line, fill_tool_names(steps))


def _message_steps(message: Record) -> list[Step]:
    role = _role(message)
    if role == "tool":
        return [_tool_result(message)]
    steps = content_steps(message, role, _block_steps)
    if not steps and (refusal := message.optional_text("refusal")):
        steps = [Step(role=role, content=refusal)]
    steps += [_tool_call(call) for call in message.optional_records("tool_calls")]
    return steps or [Step(role=role, content="")]


def _role(message: Record) -> Role:
    name = message.text("role")
    if name not in _ROLES:
        raise message.wrong(
            "role", f"{name[:40]!r} is not a role of this format", f"Use {', '.join(_ROLES)}."
        )
    if name != "assistant" and message.values.get("tool_calls"):
        raise message.wrong("tool_calls", f"a {name} message cannot call tools", "Remove them.")
    if message.values.get("function_call"):
        raise message.wrong(
            "function_call", "the older form of a tool call is not read", "Use `tool_calls`."
        )
    return _ROLES[name]


def _block_steps(block: Record, kind: str) -> list[Step] | None:
    if kind in _ANTHROPIC_BLOCKS:
        raise block.wrong("type", f"{kind!r} is a block of Anthropic", "Try anthropic_messages.")
    if kind == "refusal":
        return [Step(role="assistant", content=block.text("refusal"))]
    if kind == "thinking":
        return thinking_steps(block.text("thinking"))
    return [] if kind == "redacted_thinking" else None


def _tool_result(message: Record) -> Step:
    return Step(
        role="tool",
        content=content_text(message, "content"),
        tool_name=message.optional_text("name"),
        tool_call_id=message.optional_text("tool_call_id"),
    )


def _tool_call(call: Record) -> Step:
    """A function with its arguments, or a custom tool with its text as `{"input": text}`."""
    if call.values.get("type") == "custom":
        custom = call.record("custom")
        name, values, is_valid = custom.text("name"), _text_input(custom), True
    else:
        function = call.record("function")
        name = function.text("name")
        values, is_valid = _arguments(function)
    return Step(
        role="assistant",
        content="",
        tool_name=name,
        tool_input=values,
        tool_call_id=call.optional_text("id"),
        metadata={} if is_valid else {"invalid_arguments": True},
    )


def _text_input(custom: Record) -> dict[str, JsonValue]:
    return {"input": custom.text("input")}


def _arguments(function: Record) -> tuple[dict[str, JsonValue], bool]:
    """The arguments, and whether they were a JSON object; none at all are an empty object."""
    given = function.values.get("arguments")
    if isinstance(given, dict):
        return given, True
    text = function.optional_text("arguments") or ""
    if not text.strip():
        return {}, True
    try:
        parsed = parse_json(text)
    except ValueError:
        return {"arguments": text}, False
    return (parsed, True) if isinstance(parsed, dict) else ({"arguments": text}, False)
