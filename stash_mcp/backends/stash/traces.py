"""Conversations and annotations that lie in Stash."""

from collections.abc import Iterator, Sequence
from itertools import islice

from stash_mcp.backends.base import AnnotationDraft, ImportReport, TraceDetail, TracePage
from stash_mcp.backends.ids import STASH_PREFIX, shown
from stash_mcp.backends.stash import views
from stash_mcp.backends.stash.desk import Desk, id_at_stash
from stash_mcp.errors import InputError, StashAnswerError, TraceFormatError, UnsupportedError
from stash_mcp.models import Annotation
from stash_mcp.stash.address import is_id
from stash_mcp.stash.client import MAX_PAGE
from stash_mcp.stash.sent import AnnotationChange, AnnotationStart
from stash_mcp.stash.shapes import (
    AnnotationShape,
    QuoteShape,
    TracePageShape,
    TraceSummaryShape,
    Unread,
)
from stash_mcp.stash.wording import left_out
from stash_mcp.traces.annotations import check_annotation, export_annotation, make_annotation
from stash_mcp.traces.formats import AUTO, FORMATS, ParsedTraces, parse_traces
from stash_mcp.traces.stash import export_trace

_PUSH = (
    "Import them on this machine and send both with stash-skills push; or import the conversations "
    "alone and annotate them (annotate_trace). Nothing was sent."
)
_MORE_FORMATS = (
    "Stash itself reads more where the format is named: otel, langfuse, langsmith, claude_code, "
    "codex."
)


class Traces(Desk):
    def import_traces(
        self, data: bytes, *, format: str = AUTO, annotations: bytes | None = None
    ) -> ImportReport:
        """What our own formats cannot read is refused here; a format that is Stash's alone goes
        there as it is.
        """
        if annotations is not None:
            raise UnsupportedError("Stash takes no file of annotations.", _PUSH)
        if format == AUTO or format in {known.name for known in FORMATS}:
            return self._import_parsed(data, format)
        sent = self._client.import_traces(_text(data), format)
        return _report(sent.format, sent.imported, sent.trace_ids)

    def _import_parsed(self, data: bytes, format: str) -> ImportReport:
        parsed = _parsed(data, format)
        lines = "".join(f"{export_trace(trace)}\n" for trace in parsed.traces)
        # Each has an id by now, so that a lost answer can be asked for again.
        sent = self._client.import_traces(lines, "stash", repeatable=True)
        return _report(parsed.format, sent.imported, sent.trace_ids)

    def import_annotations(self, data: bytes) -> int:
        raise UnsupportedError("Stash takes no file of annotations.", _PUSH)

    def export_traces(self) -> Iterator[str]:
        return self._client.export_traces()

    def export_annotations(self) -> Iterator[str]:
        for row in self._client.export_annotations():
            yield export_annotation(
                Annotation(
                    id="",
                    trace_id=row.trace_external_id or row.trace_id,
                    created_at=row.created_at,
                    **row.model_dump(
                        include={"step_index", "rating", "comment", "quote", "author"}
                        | {"label_error", "label_error_note"}
                    ),
                )
            )

    def list_traces(
        self, *, limit: int, offset: int, text: str | None = None, commented: bool | None = None
    ) -> TracePage:
        """Newest first. Stash does not search: with `text` or `commented` all are gone through."""
        if text is None and commented is None and limit <= MAX_PAGE:
            page = self._client.list_traces(limit=limit, offset=offset)
            return TracePage(
                traces=tuple(map(views.summary, page.traces)),
                total=page.total,
                unread=len(page.unread),
                missing=_missing(page.unread),
            )
        odd: list[Unread] = []
        found = [row for row in self._all_traces(odd) if _fits(row, text, commented)]
        part = islice(found, offset, offset + limit)
        return TracePage(
            traces=tuple(map(views.summary, part)), total=len(found), missing=_missing(odd)
        )

    def _all_traces(self, odd: list[Unread]) -> Iterator[TraceSummaryShape]:
        """Newest first, each once; page by page. What cannot be read is added to `odd`."""
        seen: set[str] = set()
        offset, total = 0, 1
        while offset < total:
            page: TracePageShape = self._client.list_traces(limit=MAX_PAGE, offset=offset)
            new = [row for row in page.traces if row.id not in seen]
            unread = [row for row in page.unread if row not in odd]
            if not (new or unread):
                # It promises more than it has.
                return
            yield from new
            seen |= {row.id for row in new}
            odd += unread
            offset, total = offset + len(page.traces) + len(page.unread), page.total

    def _all_ids(self) -> list[str]:
        """Also of those whose other fields cannot be read here: they lie at Stash all the same."""
        odd: list[Unread] = []
        ids = [row.id for row in self._all_traces(odd)]
        return ids + [row.id for row in odd if row.id is not None and is_id(row.id)]

    def get_trace(self, trace_id: str) -> TraceDetail:
        shape = self._client.get_trace(id_at_stash(trace_id, "conversation"))
        return TraceDetail(
            trace=views.trace(shape),
            annotations=views.annotations(shape),
            missing=left_out(shape.unread, "annotation", STASH_PREFIX),
        )

    def annotate(self, draft: AnnotationDraft) -> Annotation:
        if draft.author is not None:
            raise UnsupportedError(
                "Stash takes the key's account for the author.",
                "Leave author out. Nothing was sent.",
            )
        shape = self._client.get_trace(id_at_stash(draft.trace_id, "conversation"))
        wanted = make_annotation(
            trace_id=draft.trace_id,
            created_at=self._around.clock(),
            step_index=draft.step_index,
            rating=draft.rating,
            comment=draft.comment,
            quote=draft.quote,
        )
        check_annotation(wanted, views.trace(shape))
        index, quote = wanted.step_index, wanted.quote
        order = AnnotationStart(
            step_id=None if index is None else views.step_ids(shape)[index],
            rating=wanted.rating,
            comment=wanted.comment,
            quote=None if quote is None else QuoteShape(**quote.model_dump()),
        )
        return views.annotation(self._client.annotate(shape.id, order), index)

    def flag_annotation(self, annotation_id: str, note: str | None, *, flagged: bool) -> Annotation:
        change = AnnotationChange(label_error=flagged, label_error_note=note if flagged else None)
        id = id_at_stash(annotation_id, "annotation")
        changed = self._client.change_annotation(id, change)
        return views.annotation(changed, self._place(changed))

    def _place(self, changed: AnnotationShape) -> int | None:
        if changed.step_id is None:
            return None
        ids = views.step_ids(self._client.get_trace(changed.trace_id))
        if changed.step_id not in ids:
            raise StashAnswerError(
                "The annotation was changed, and its step is gone from the conversation.",
                "Read the conversation with get_trace.",
            )
        return ids.index(changed.step_id)


def _report(format: str, imported: int, trace_ids: tuple[str, ...]) -> ImportReport:
    return ImportReport(
        backend="stash",
        format=format,
        imported=imported,
        added=None,
        replaced=None,
        unchanged=None,
        annotations_removed=None,
        annotations_added=0,
        trace_ids=tuple(map(shown, trace_ids)),
    )


def _parsed(data: bytes, format: str) -> ParsedTraces:
    try:
        return parse_traces(data, format)
    except TraceFormatError as error:
        if format != AUTO:
            raise
        raise TraceFormatError(error.problem, f"{error.fix} {_MORE_FORMATS}") from None


def _text(data: bytes) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(
            "The conversations are not UTF-8 text.", "Save them as UTF-8. Nothing was sent."
        ) from error


def _missing(unread: Sequence[Unread]) -> str | None:
    return left_out(unread, "conversation", STASH_PREFIX)


def _fits(row: TraceSummaryShape, text: str | None, commented: bool | None) -> bool:
    named = " ".join((shown(row.id), row.external_id or "", row.title or ""))
    if text is not None and text.casefold() not in named.casefold():
        return False
    return commented is None or commented == (row.comment_count > 0)
