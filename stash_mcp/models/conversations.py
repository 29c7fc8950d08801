"""Conversations, what reviewers said of them, and what a training and a run make of both."""

from datetime import datetime
from typing import Literal

from pydantic import Field, JsonValue

from stash_mcp.models.base import Frozen

Role = Literal["system", "user", "assistant", "tool"]
Rating = Literal[1, -1]
Granularity = Literal["trace", "step"]


class Step(Frozen):
    role: Role
    content: str
    tool_name: str | None = None
    tool_input: dict[str, JsonValue] | None = None
    tool_call_id: str | None = None
    metadata: dict[str, JsonValue] = Field(default_factory=dict)


class Trace(Frozen):
    id: str
    title: str | None = None
    metadata: dict[str, JsonValue] = Field(default_factory=dict)
    steps: tuple[Step, ...]


class TraceSummary(Frozen):
    """One row of a list of traces; counts are of unflagged annotations.

    `external_id`: at Stash, the id that the trace was imported with.
    """

    id: str
    external_id: str | None = None
    title: str | None
    steps: int
    positive: int
    negative: int
    comments: int


class Quote(Frozen):
    """The passage of a step that a comment is about, with a little of what stands around it."""

    text: str
    prefix: str = ""
    suffix: str = ""


class Annotation(Frozen):
    """A reviewer's rating and/or comment on a trace (`step_index` null) or on one of its steps."""

    id: str
    trace_id: str
    step_index: int | None = None
    rating: Rating | None = None
    comment: str | None = None
    quote: Quote | None = None
    label_error: bool = False
    label_error_note: str | None = None
    author: str | None = None
    created_at: datetime


class InputFormat(Frozen):
    """How a reward model's checkpoint reads a conversation: version 1 is our own rendering, 3 has
    sections, one of which is the rubric."""

    version: Literal[1, 3] = 1
    rubric: tuple[str, ...] = ()


INPUT_VERSION_1 = InputFormat()


class PreferencePair(Frozen):
    """Two rendered conversations of one granularity, the better one first."""

    chosen: str
    rejected: str
    chosen_trace_id: str
    rejected_trace_id: str
    granularity: Granularity


class Message(Frozen):
    role: str
    content: str


class Example(Frozen):
    """A conversation up to its first assistant step, with the reviewers' comments on the trace."""

    trace_id: str
    system: str | None
    messages: tuple[Message, ...]
    feedback: tuple[str, ...]


class Skipped(Frozen):
    """How many traces were left out for one reason."""

    reason: str
    count: int
