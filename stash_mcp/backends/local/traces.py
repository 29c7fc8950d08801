"""Traces and annotations of the local library."""

from collections.abc import Iterator

from stash_mcp.backends.base import AnnotationDraft, ImportReport, TraceDetail, TracePage
from stash_mcp.backends.ids import refuse_stash_ids
from stash_mcp.backends.local.workshop import Workshop
from stash_mcp.errors import AnnotationError
from stash_mcp.models import Annotation
from stash_mcp.traces.annotations import (
    check_annotation,
    export_annotation,
    make_annotation,
    parse_annotations,
)
from stash_mcp.traces.formats import parse_traces
from stash_mcp.traces.stash import export_trace
from stash_mcp.traces.undated import FirstImport


class Traces(Workshop):
    def import_traces(
        self, data: bytes, *, format: str = "auto", annotations: bytes | None = None
    ) -> ImportReport:
        parsed = parse_traces(data, format)
        refuse_stash_ids(trace.id for trace in parsed.traces)
        comments = [] if annotations is None else self._parsed(annotations)
        counts, added = self._library.put_annotated_traces(
            parsed.traces, comments, check_annotation
        )
        return ImportReport(
            format=parsed.format,
            imported=len(parsed.traces),
            added=counts.added,
            replaced=counts.replaced,
            unchanged=counts.unchanged,
            annotations_removed=counts.annotations_removed,
            annotations_added=added,
            trace_ids=tuple(trace.id for trace in parsed.traces),
        )

    def import_annotations(self, data: bytes) -> int:
        return self._library.add_annotations(self._parsed(data), check_annotation)

    def _parsed(self, data: bytes) -> list[Annotation]:
        """Its errors name the file, as conversations may have come with it."""
        known = FirstImport(lambda trace_id: self._library.annotations([trace_id]), self._clock())
        try:
            return parse_annotations(data, known)
        except AnnotationError as error:
            raise AnnotationError(f"The annotations: {error.problem}", error.fix) from error

    def export_traces(self) -> Iterator[str]:
        for trace in self._library.traces(self._library.matching_ids(None)):
            yield export_trace(trace)

    def export_annotations(self) -> Iterator[str]:
        for annotation in self._library.annotations(self._library.matching_ids(None)):
            yield export_annotation(annotation)

    def annotate(self, draft: AnnotationDraft) -> Annotation:
        annotation = make_annotation(
            created_at=self._clock(),
            trace_id=draft.trace_id,
            step_index=draft.step_index,
            rating=draft.rating,
            comment=draft.comment,
            quote=draft.quote,
            author=draft.author,
        )
        self._library.add_annotations([annotation], check_annotation)
        return annotation

    def flag_annotation(self, annotation_id: str, note: str | None, *, flagged: bool) -> Annotation:
        return self._library.flag_annotation(annotation_id, note, flagged=flagged)

    def list_traces(
        self, *, limit: int, offset: int, text: str | None = None, commented: bool | None = None
    ) -> TracePage:
        traces, total = self._library.list_traces(
            limit=limit, offset=offset, text=text, commented=commented
        )
        return TracePage(traces=tuple(traces), total=total)

    def get_trace(self, trace_id: str) -> TraceDetail:
        return TraceDetail(
            trace=self._library.trace(trace_id),
            annotations=tuple(self._library.annotations([trace_id])),
        )
