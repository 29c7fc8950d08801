"""What every adapter yields, and the checks and ids that make traces of it."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from pydantic import JsonValue

from stash_mcp.errors import TraceFormatError
from stash_mcp.models import Step, Trace
from stash_mcp.traces.identity import ContentIds

MAX_ID_CHARACTERS = 500


@dataclass(frozen=True)
class Conversation:
    """One conversation of a payload; `line` is where it stands, `id` None where it has none."""

    line: int
    steps: tuple[Step, ...]
    id: str | None = None
    title: str | None = None
    metadata: dict[str, JsonValue] = field(default_factory=dict)


def to_traces(conversations: Iterable[Conversation]) -> tuple[Trace, ...]:
    """Checked traces, in order. One without an id gets one from its content and its number among
    equal ones. TraceFormatError for one without a step to learn from, and for a repeated id.
    """
    ids = ContentIds("t")
    lines: dict[str, int] = {}
    traces = []
    for conversation in conversations:
        _check_steps(conversation)
        trace_id = _given_id(conversation) or ids.next_id(_content(conversation))
        if trace_id in lines:
            raise TraceFormatError(
                f"Lines {lines[trace_id]} and {conversation.line} have the same id '{trace_id}'.",
                "Give each conversation an id of its own, or none. Nothing was stored.",
            )
        lines[trace_id] = conversation.line
        traces.append(
            Trace(
                id=trace_id,
                title=conversation.title,
                metadata=conversation.metadata,
                steps=conversation.steps,
            )
        )
    return tuple(traces)


def fill_tool_names(steps: Sequence[Step]) -> tuple[Step, ...]:
    """Name each unnamed tool step after the latest call before it with the same call id."""
    names: dict[str, str] = {}
    filled = []
    for step in steps:
        if step.role == "assistant" and step.tool_call_id and step.tool_name:
            names[step.tool_call_id] = step.tool_name
        name = names.get(step.tool_call_id or "")
        if step.role == "tool" and step.tool_name is None and name is not None:
            step = step.model_copy(update={"tool_name": name})
        filled.append(step)
    return tuple(filled)


def _check_steps(conversation: Conversation) -> None:
    if not conversation.steps:
        raise TraceFormatError(
            f"Line {conversation.line}: the conversation has no steps.",
            "Leave it out, or give it at least one message. Nothing was stored.",
        )
    if all(step.role == "system" for step in conversation.steps):
        raise TraceFormatError(
            f"Line {conversation.line}: the conversation has only system steps.",
            "Leave it out, or add what the user and the assistant said. Nothing was stored.",
        )


def _given_id(conversation: Conversation) -> str | None:
    given = conversation.id
    if given is not None and (not given.strip() or len(given) > MAX_ID_CHARACTERS):
        raise TraceFormatError(
            f"Line {conversation.line}, `id`: it is blank or over {MAX_ID_CHARACTERS} characters.",
            "Give a short id, or leave it out to have one made. Nothing was stored.",
        )
    return given


def _content(conversation: Conversation) -> object:
    steps = [step.model_dump(exclude_defaults=True) for step in conversation.steps]
    return [conversation.title, conversation.metadata, steps]
