"""The formats that can be imported, and `auto`, which finds the one that fits.

To add a format: write an adapter file with a `read` like the others' and put it in its place here.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from stash_mcp.errors import TraceFormatError
from stash_mcp.models import Trace
from stash_mcp.traces import anthropic_messages, openai_chat, stash
from stash_mcp.traces.conversation import Conversation, to_traces
from stash_mcp.traces.payload import Row, read_rows

AUTO = "auto"


@dataclass(frozen=True)
class Format:
    """`read` turns the rows of a payload into conversations, or raises TraceFormatError."""

    name: str
    description: str
    read: Callable[[Sequence[Row]], Iterable[Conversation]]


@dataclass(frozen=True)
class ParsedTraces:
    """`format` is the name of the format that fitted."""

    format: str
    traces: tuple[Trace, ...]


# In the order in which `auto` tries them.
FORMATS: tuple[Format, ...] = (
    Format("stash", "Stash Trace Format, JSONL of {id, title, metadata, steps}", stash.read),
    Format(
        "openai_chat",
        "OpenAI chat completions, JSONL of {messages}, or one JSON array of messages",
        openai_chat.read,
    ),
    Format(
        "anthropic_messages",
        "Anthropic Messages API, JSONL of {system, messages}",
        anthropic_messages.read,
    ),
)


def parse_traces(data: bytes, format: str = AUTO) -> ParsedTraces:
    """The traces of a file, in its order; at least one.

    format: a name of FORMATS, or `auto`. The whole payload is read and checked first; the first
    thing that does not fit raises TraceFormatError with its line and field.
    """
    if format == AUTO:
        return _first_fit(read_rows(data, TraceFormatError))
    chosen = _named(format)
    rows = read_rows(data, TraceFormatError)
    return ParsedTraces(chosen.name, to_traces(chosen.read(rows)))


def _named(name: str) -> Format:
    for candidate in FORMATS:
        if candidate.name == name:
            return candidate
    known = ", ".join([AUTO, *(candidate.name for candidate in FORMATS)])
    raise TraceFormatError(f"There is no format '{name}'.", f"Use one of: {known}.")


def _first_fit(rows: Sequence[Row]) -> ParsedTraces:
    reasons = []
    for candidate in FORMATS:
        try:
            return ParsedTraces(candidate.name, to_traces(candidate.read(rows)))
        except TraceFormatError as error:
            reasons.append(f"{candidate.name}: {error.problem}")
    raise TraceFormatError(
        f"The file fits none of the {len(FORMATS)} formats. {' '.join(reasons)}",
        "Correct what is said of the format that you meant, or name another. Nothing was stored.",
    )
