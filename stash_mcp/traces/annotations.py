"""Annotations: their JSONL, in the shape of Stash's export, and the rules that they must keep.

An annotation's id is made from its content, so importing a file again, or an export of one's own
library, changes nothing. Whether a label was flagged as wrong is not part of that.
"""

from collections.abc import Callable, Collection
from datetime import UTC, datetime

from pydantic import JsonValue

from stash_mcp.errors import AnnotationError
from stash_mcp.models import Annotation, Quote, Rating, Step, Trace
from stash_mcp.traces.identity import ContentIds
from stash_mcp.traces.payload import UNKEPT_CHARACTER, read_rows
from stash_mcp.traces.record import Record, record_of
from stash_mcp.traces.stash import json_line

_RATINGS: dict[int, Rating] = {1: 1, -1: -1}


TimeOf = Callable[[Annotation, Collection[str]], datetime]
"""An annotation that has no time yet, and the ids of those of its file that have one -> its time,
with a time zone.
"""

_NO_TIME = datetime.min.replace(tzinfo=UTC)


def parse_annotations(data: bytes, time_of: TimeOf) -> list[Annotation]:
    """The annotations of a JSONL file, in its order; at least one.

    `trace_external_id` wins over `trace_id`; `time_of` is asked where there is no `created_at`.
    AnnotationError with line and field for what cannot be read; whether each fits its trace is for
    `check_annotation`.
    """
    rows = [_draft(record_of(row, AnnotationError)) for row in read_rows(data, AnnotationError)]
    ids = ContentIds("a")
    made = {place: _identified(row, ids) for place, row in enumerate(rows) if _has_time(row)}
    dated = {row.id for row in made.values()}
    for place, row in enumerate(rows):
        if place not in made:
            moment = _utc(time_of(row, dated))
            made[place] = _identified(row.model_copy(update={"created_at": moment}), ids)
    return [made[place] for place in range(len(rows))]


def make_annotation(
    *,
    trace_id: str,
    created_at: datetime,
    step_index: int | None = None,
    rating: Rating | None = None,
    comment: str | None = None,
    quote: Quote | None = None,
    author: str | None = None,
    annotation_id: str | None = None,
) -> Annotation:
    """A new annotation; a blank comment counts as none.

    created_at: with a time zone; without one it is taken as UTC. annotation_id: None makes it from
    the content, as an import of the exported annotation would.
    """
    annotation = Annotation(
        id=annotation_id or "",
        trace_id=trace_id,
        step_index=step_index,
        rating=rating,
        comment=_unless_blank(comment),
        quote=quote,
        author=author,
        created_at=_utc(created_at),
    )
    return annotation if annotation_id else _identified(annotation, ContentIds("a"))


def export_annotation(annotation: Annotation) -> str:
    """The annotation as one line without its line end, in the shape of Stash's export."""
    fields = annotation.model_dump(exclude={"id", "created_at"})
    return json_line(
        {
            "trace_id": annotation.trace_id,
            "trace_external_id": annotation.trace_id,
            **fields,
            "created_at": annotation.created_at.isoformat(),
        }
    )


def check_annotation(annotation: Annotation, trace: Trace) -> None:
    """Raise AnnotationError where the annotation says nothing or does not fit its trace."""
    if annotation.rating is None and _unless_blank(annotation.comment) is None:
        raise _misfit(annotation, "has neither a rating nor a comment", "Give one or both.")
    _check_characters(annotation)
    step = _step(annotation, trace)
    if step is not None and step.role == "system" and annotation.rating is not None:
        raise _misfit(
            annotation,
            "rates a system step, which no reward model sees",
            "Comment on it without a rating, or rate another step.",
        )
    if annotation.quote is not None:
        _check_quote(annotation, annotation.quote, step)


def _check_characters(annotation: Annotation) -> None:
    quote = annotation.quote or Quote(text="")
    texts = (
        annotation.comment,
        annotation.author,
        annotation.label_error_note,
        quote.text,
        quote.prefix,
        quote.suffix,
    )
    if any(text and UNKEPT_CHARACTER.search(text) for text in texts):
        raise _misfit(
            annotation,
            "contains a NUL character or half of a surrogate pair",
            "Write its text again in UTF-8.",
        )


def _step(annotation: Annotation, trace: Trace) -> Step | None:
    index = annotation.step_index
    if index is None:
        return None
    if not 0 <= index < len(trace.steps):
        raise _misfit(
            annotation,
            f"does not fit: there are {len(trace.steps)} steps",
            f"Use a step_index from 0 to {len(trace.steps) - 1}.",
        )
    return trace.steps[index]


def _check_quote(annotation: Annotation, quote: Quote, step: Step | None) -> None:
    if step is None:
        raise _misfit(
            annotation, "quotes a passage without naming its step", "Give its step_index."
        )
    if not quote.text or quote.text not in step.content:
        raise _misfit(
            annotation,
            f"quotes {quote.text[:60]!r}, which that step's content does not contain",
            "Copy the passage from the step exactly, or leave the quote out.",
        )


def _misfit(annotation: Annotation, problem: str, fix: str) -> AnnotationError:
    target = f"trace '{annotation.trace_id}'"
    if annotation.step_index is not None:
        target = f"step {annotation.step_index} of {target}"
    return AnnotationError(f"The annotation on {target} {problem}.", f"{fix} Nothing was stored.")


def said(annotation: Annotation) -> dict[str, JsonValue]:
    """What it says and of what, without when and whether it was flagged."""
    return annotation.model_dump(
        mode="json", exclude={"id", "label_error", "label_error_note", "created_at"}
    )


def _draft(record: Record) -> Annotation:
    """Without an id, and at _NO_TIME where it has none."""
    return Annotation(
        id="",
        trace_id=record.optional_text("trace_external_id") or record.text("trace_id"),
        step_index=_step_index(record),
        rating=_rating(record),
        comment=_unless_blank(record.optional_text("comment")),
        quote=_quote(record),
        label_error=record.flag("label_error"),
        label_error_note=record.optional_text("label_error_note"),
        author=record.optional_text("author"),
        created_at=_created_at(record),
    )


def _has_time(annotation: Annotation) -> bool:
    return annotation.created_at != _NO_TIME


def _step_index(record: Record) -> int | None:
    if record.values.get("step_index") is None:
        return None
    index = record.integer("step_index")
    if index < 0:
        raise record.wrong("step_index", f"{index} is below 0", "Count the steps from 0.")
    return index


def _rating(record: Record) -> Rating | None:
    if record.values.get("rating") is None:
        return None
    rating = record.integer("rating")
    if rating not in _RATINGS:
        raise record.wrong("rating", f"{rating!r:.30} is not a rating", "Use 1, -1 or null.")
    return _RATINGS[rating]


def _quote(record: Record) -> Quote | None:
    if record.values.get("quote") is None:
        return None
    quote = record.record("quote")
    return Quote(
        text=quote.text("text"),
        prefix=quote.optional_text("prefix") or "",
        suffix=quote.optional_text("suffix") or "",
    )


def _created_at(record: Record) -> datetime:
    text = record.optional_text("created_at")
    if text is None:
        return _NO_TIME
    try:
        return _utc(datetime.fromisoformat(text))
    except (ValueError, OverflowError) as error:
        raise record.wrong(
            "created_at",
            f"{text[:40]!r} is not a time",
            "Use ISO 8601 with a time zone, such as 2026-01-31T12:00:00+00:00, or leave it out for "
            "the time of the import.",
        ) from error


def _identified(annotation: Annotation, ids: ContentIds) -> Annotation:
    content = said(annotation)
    content["created_at"] = annotation.created_at.isoformat()
    return annotation.model_copy(update={"id": ids.next_id(content)})


def _unless_blank(comment: str | None) -> str | None:
    return comment if comment and comment.strip() else None


def _utc(moment: datetime) -> datetime:
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
