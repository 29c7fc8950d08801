"""A conversation as Markdown, each step as the reward model reads it, with what reviewers said."""

from collections.abc import Iterator, Sequence

from stash_mcp.backends.base import TraceDetail
from stash_mcp.models import Annotation, Step
from stash_mcp.rendering import render_steps
from stash_mcp.server.fences import fenced
from stash_mcp.server.results import (
    ANNOTATIONS_SHOWN,
    COMMENT_CHARACTERS,
    QUOTE_CHARACTERS,
    TITLE_CHARACTERS,
    rating_word,
)
from stash_mcp.server.shortening import PAGE_BYTES, one_line, shorten

STEP_CHARACTERS = 3000


def trace_text(detail: TraceDetail) -> str:
    """At most about 30,000 bytes; what is left out is named, with the call that reads it."""
    trace = detail.trace
    title = one_line(trace.title or "", TITLE_CHARACTERS)
    parts = [f"# {title or trace.id}", f"`{trace.id}`, {len(trace.steps)} steps"]
    parts += [detail.missing] if detail.missing else []
    parts += _notes(detail.annotations, None)
    used = 0
    for index, step in enumerate(trace.steps):
        shown = "\n\n".join(_step(index, step, detail.annotations))
        used += len(shown.encode("utf-8", errors="replace"))
        if used > PAGE_BYTES and index:
            parts.append(_left_out(trace.id, index, len(trace.steps)))
            break
        parts.append(shown)
    return "\n\n".join(parts) + "\n"


def _step(index: int, step: Step, annotations: Sequence[Annotation]) -> Iterator[str]:
    yield f"## Step {index}: {step.role}"
    rendered = render_steps([step])
    # The rendering leaves system steps out: the reward model does not see them.
    yield fenced(shorten(rendered or step.content, STEP_CHARACTERS))
    yield from _notes(annotations, index)


def _notes(annotations: Sequence[Annotation], index: int | None) -> list[str]:
    here = [row for row in annotations if row.step_index == index]
    lines = [_note(row) for row in here[:ANNOTATIONS_SHOWN]]
    if len(here) > ANNOTATIONS_SHOWN:
        lines.append(f"- {len(here) - ANNOTATIONS_SHOWN} more: get_trace")
    return ["\n".join(lines)] if lines else []


def _note(row: Annotation) -> str:
    said = [word for word in (rating_word(row.rating), row.author) if word]
    if row.label_error:
        said.append("flagged as wrong, out of training")
    line = f"- {row.id} ({', '.join(said) or 'comment'})"
    if row.quote is not None:
        line += f' on "{_one_line(row.quote.text, QUOTE_CHARACTERS)}"'
    return f"{line}: {_one_line(row.comment, COMMENT_CHARACTERS)}" if row.comment else line


def _one_line(text: str, characters: int) -> str:
    return shorten(" ".join(text.split()), characters).replace("\n", " ")


def _left_out(trace_id: str, index: int, total: int) -> str:
    return (
        f"[... steps {index} to {total - 1} left out: "
        f'get_trace(trace_id="{trace_id}", from_step={index}) ...]'
    )
