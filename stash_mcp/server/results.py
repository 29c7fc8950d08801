"""What the tools for conversations return; `Result` is the base of every tool's answer.

A field without a value is left out of the answer. Long texts are shortened, lists are paged.
"""

import json
from collections.abc import Sequence
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, SerializerFunctionWrapHandler, model_serializer

from stash_mcp.backends.base import ImportReport, TraceDetail, TracePage
from stash_mcp.models import Annotation, Rating, Step, TraceSummary
from stash_mcp.server.shortening import (
    PAGE_BYTES,
    first_within,
    fit,
    next_offset,
    one_line,
    shorten,
)

TITLE_CHARACTERS = 120
COMMENT_CHARACTERS = 400
QUOTE_CHARACTERS = 100
INPUT_CHARACTERS = 2000
METADATA_CHARACTERS = 500
IDS_SHOWN = 40
ANNOTATIONS_SHOWN = 8
_ANNOTATIONS_BYTES = 6_000


class Part(BaseModel):
    """A part of an answer."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    @model_serializer(mode="wrap")
    def _without_nulls(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return {key: _present(value) for key, value in handler(self).items() if value is not None}


class Result(Part):
    """A whole answer. Where there are news for the person, the server adds them as `notices`."""


def _present(value: object) -> object:
    if isinstance(value, dict):
        return {key: _present(item) for key, item in value.items() if item is not None}
    if isinstance(value, list | tuple):
        return [_present(item) for item in value]
    return value


class ImportResult(Result):
    backend: str
    format: str
    imported: int
    added: int | None = None
    replaced: int | None = None
    unchanged: int | None = None
    annotations_added: int
    annotations_removed: int | None = Field(
        None, description="On steps that the import replaced; Stash tells none of these counts"
    )
    trace_ids: tuple[str, ...]
    trace_ids_left_out: int
    next: str

    @classmethod
    def of(cls, report: ImportReport) -> "ImportResult":
        shown = report.trace_ids[:IDS_SHOWN]
        return cls(
            **report.model_dump(exclude={"trace_ids"}),
            trace_ids=shown,
            trace_ids_left_out=len(report.trace_ids) - len(shown),
            next=_after_import(report),
        )


def _after_import(report: ImportReport) -> str:
    if report.annotations_added:
        return "See what was reviewed with list_traces, then train with train_reward_model."
    return (
        "Read a conversation with get_trace and record what the reviewer says of it with "
        "annotate_trace; both good and bad ones are needed to train."
    )


class AnnotationRow(Part):
    id: str
    step: int | None = Field(None, description="Left out: on the whole conversation")
    rating: Literal["up", "down"] | None = None
    comment: str | None = None
    quote: str | None = None
    author: str | None = None
    label_error: bool | None = Field(None, description="True: out of training")

    @classmethod
    def of(cls, annotation: Annotation) -> "AnnotationRow":
        comment, quote = annotation.comment, annotation.quote
        return cls(
            id=annotation.id,
            step=annotation.step_index,
            rating=rating_word(annotation.rating),
            comment=None if comment is None else shorten(comment, COMMENT_CHARACTERS),
            quote=None if quote is None else shorten(quote.text, QUOTE_CHARACTERS),
            author=annotation.author,
            label_error=annotation.label_error or None,
        )


class AnnotateResult(Result):
    trace_id: str
    annotation: AnnotationRow
    next: str

    @classmethod
    def of(cls, annotation: Annotation) -> "AnnotateResult":
        return cls(
            trace_id=annotation.trace_id,
            annotation=AnnotationRow.of(annotation),
            next="Go on with the next step or conversation. With several rated up and several "
            "rated down, train with train_reward_model.",
        )


class TraceRow(Part):
    trace_id: str
    external_id: str | None = Field(None, description="At Stash: the id it was imported with")
    title: str | None = None
    steps: int
    positive: int = Field(description="Ratings up")
    negative: int = Field(description="Ratings down")
    comments: int

    @classmethod
    def of(cls, summary: TraceSummary) -> "TraceRow":
        title = summary.title
        return cls(
            **summary.model_dump(exclude={"id", "title"}),
            trace_id=summary.id,
            title=None if title is None else one_line(title, TITLE_CHARACTERS),
        )


class TraceList(Result):
    traces: tuple[TraceRow, ...]
    total: int
    next_offset: int | None = None
    missing: str | None = Field(None, description="What could not be read")

    @classmethod
    def of(cls, page: TracePage, offset: int) -> "TraceList":
        rows = fit(TraceRow.of(summary) for summary in page.traces)
        passed = len(rows) + (page.unread if len(rows) == len(page.traces) else 0)
        return cls(
            traces=rows,
            total=page.total,
            next_offset=next_offset(offset, passed, page.total),
            missing=page.missing,
        )


class StepView(Part):
    step: int = Field(description="For annotate_trace")
    role: str
    content: str
    tool_name: str | None = None
    tool_input: str | None = Field(None, description="JSON")
    annotations: tuple[AnnotationRow, ...] | None = None
    annotations_left_out: int | None = None

    @classmethod
    def of(
        cls, index: int, step: Step, annotations: Sequence[Annotation], characters: int
    ) -> "StepView":
        here = [row for row in annotations if row.step_index == index]
        return cls(
            step=index,
            role=step.role,
            content=shorten(step.content, characters),
            tool_name=step.tool_name,
            tool_input=_tool_input(step),
            annotations=(shown := _shown(here)) or None,
            annotations_left_out=_left_out(here, shown),
        )


class TraceView(Result):
    trace_id: str
    title: str | None = None
    metadata: str | None = Field(None, description="JSON")
    total_steps: int
    steps: tuple[StepView, ...]
    next_step: int | None = Field(None, description="from_step of the next page")
    annotations: tuple[AnnotationRow, ...] = Field(description="On the whole")
    annotations_left_out: int | None = None
    missing: str | None = Field(None, description="What could not be read")
    text: str | None = None
    next_offset: int | None = None

    @classmethod
    def in_full(cls, detail: TraceDetail, text: str, offset: int) -> "TraceView":
        """A page of the text of one step, from the character `offset` on."""
        trace = detail.trace
        page = first_within(text[offset:], PAGE_BYTES)
        return cls(
            trace_id=trace.id,
            total_steps=len(trace.steps),
            steps=(),
            annotations=(),
            missing=detail.missing,
            text=page,
            next_offset=next_offset(offset, len(page), len(text)),
        )

    @classmethod
    def of(cls, detail: TraceDetail, from_step: int, characters: int) -> "TraceView":
        trace = detail.trace
        whole = [row for row in detail.annotations if row.step_index is None]
        steps = fit(
            StepView.of(index, step, detail.annotations, characters)
            for index, step in enumerate(trace.steps)
            if index >= from_step
        )
        return cls(
            trace_id=trace.id,
            title=None if trace.title is None else one_line(trace.title, TITLE_CHARACTERS),
            metadata=shorten(json.dumps(trace.metadata, ensure_ascii=False), METADATA_CHARACTERS)
            if trace.metadata
            else None,
            total_steps=len(trace.steps),
            steps=steps,
            next_step=next_offset(from_step, len(steps), len(trace.steps)),
            annotations=(shown := _shown(whole)),
            annotations_left_out=_left_out(whole, shown),
            missing=detail.missing,
        )


def rating_word(rating: Rating | None) -> Literal["up", "down"] | None:
    """How the tools and the command write a rating."""
    if rating is None:
        return None
    return "up" if rating > 0 else "down"


def _tool_input(step: Step) -> str | None:
    if step.tool_input is None:
        return None
    return shorten(json.dumps(step.tool_input, ensure_ascii=False), INPUT_CHARACTERS)


def _shown(annotations: Sequence[Annotation]) -> tuple[AnnotationRow, ...]:
    rows = (AnnotationRow.of(row) for row in annotations[:ANNOTATIONS_SHOWN])
    return fit(rows, _ANNOTATIONS_BYTES)


def _left_out(annotations: Sequence[Annotation], shown: Sequence[AnnotationRow]) -> int | None:
    return len(annotations) - len(shown) or None
