"""One step of a conversation in full, with all that was said of it: nothing is left out."""

import json
from collections.abc import Iterator

from stash_mcp.backends.base import TraceDetail
from stash_mcp.errors import NotFoundError
from stash_mcp.models import Annotation
from stash_mcp.server.results import rating_word

WHOLE = -1
"""Instead of a step's number: what is known and said of the whole conversation."""


def step_text(detail: TraceDetail, step: int) -> str:
    """Raises NotFoundError for a number that no step has."""
    total = len(detail.trace.steps)
    if step >= total:
        raise NotFoundError(
            f"The conversation '{detail.trace.id}' has no step {step}; it has {total}.",
            "They count from 0.",
        )
    parts = _whole(detail) if step == WHOLE else _step(detail, step)
    index = None if step == WHOLE else step
    said = [_annotation(row) for row in detail.annotations if row.step_index == index]
    return "\n\n".join([*parts, *said]) + "\n"


def _whole(detail: TraceDetail) -> Iterator[str]:
    yield f"# {detail.trace.title or detail.trace.id}"
    if detail.trace.metadata:
        yield _json(detail.trace.metadata)


def _step(detail: TraceDetail, index: int) -> Iterator[str]:
    step = detail.trace.steps[index]
    yield f"## Step {index}: {step.role}"
    if step.tool_name or step.tool_input is not None:
        given = "" if step.tool_input is None else f" {_json(step.tool_input)}"
        yield f"Tool {step.tool_name or ''}{given}"
    yield step.content


def _annotation(row: Annotation) -> str:
    flagged = "flagged as wrong" if row.label_error else None
    said = [word for word in (rating_word(row.rating), row.author, flagged) if word]
    lines = [f"### Annotation {row.id} ({', '.join(said) or 'comment'})"]
    if row.quote is not None:
        lines.append("\n".join(f"> {line}" for line in row.quote.text.split("\n")))
    return "\n\n".join([*lines, *([row.comment] if row.comment else [])])


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
