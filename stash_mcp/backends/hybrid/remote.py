"""What Stash has, read piece by piece: the list of ids, conversations, annotations.

A few conversations are asked for one by one, many come with the export. Only ids are held for all.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from stash_mcp.backends.stash import views
from stash_mcp.errors import StashError, StashNotFoundError, TraceFormatError
from stash_mcp.models import Annotation, Quote, Trace
from stash_mcp.stash import StashClient
from stash_mcp.stash.client import MAX_PAGE
from stash_mcp.stash.shapes import (
    AnnotationShape,
    ExportedAnnotationShape,
    QuoteShape,
    TraceShape,
)
from stash_mcp.traces.annotations import make_annotation
from stash_mcp.traces.formats import parse_traces

FEW = 50
"""Conversations up to which each is asked for by itself."""
_LISTINGS = 3
_EXPORTS = 3


@dataclass(frozen=True)
class RemoteTrace:
    """external_id: what it was imported with; None where it had no id."""

    id: str
    external_id: str | None


@dataclass(frozen=True)
class Read:
    """A conversation of Stash. detail: with its annotations, where it was asked for by itself."""

    remote: RemoteTrace
    trace: Trace
    detail: TraceShape | None = None


@dataclass(frozen=True)
class Note:
    """An annotation of Stash as it would be here. remote_id: an export does not tell it."""

    remote_trace_id: str
    remote_id: str | None
    annotation: Annotation


def list_remote(client: StashClient) -> dict[str, RemoteTrace]:
    """Every trace by its id. Listed again where some went meanwhile, as others may be missed."""
    found: dict[str, RemoteTrace] = {}
    for _ in range(_LISTINGS):
        total, offset = 1, 0
        listed: set[str] = set()
        while offset < total:
            page = client.list_traces(limit=MAX_PAGE, offset=offset)
            total, offset = page.total, offset + MAX_PAGE
            if listed.issuperset(row.id for row in page.traces):
                # It promises more than it has.
                break
            for row in page.traces:
                found[row.id] = RemoteTrace(row.id, row.external_id)
            listed |= {row.id for row in page.traces}
        if len(found) >= total:
            break
    return found


def read_traces(client: StashClient, wanted: Iterable[RemoteTrace]) -> Iterator[Read]:
    """Those of them that are still there, each once, in any order.

    A broken export is begun again for what is missing. StashError where it stays broken.
    """
    missing = {remote.id: remote for remote in wanted}
    if len(missing) > FEW:
        for attempt in range(1, _EXPORTS + 1):
            try:
                yield from _exported(client, missing)
                break
            except StashError as error:
                if not error.passing or attempt == _EXPORTS:
                    raise
    for remote in list(missing.values()):
        try:
            detail = client.get_trace(remote.id)
        except StashNotFoundError:
            continue
        yield Read(remote, trace_of(detail), detail)


def _exported(client: StashClient, missing: dict[str, RemoteTrace]) -> Iterator[Read]:
    """Takes what it yields out of `missing`. A line without an id, or with one that several have,
    is left for a request of its own."""
    by_external: dict[str, list[RemoteTrace]] = {}
    for remote in missing.values():
        if remote.external_id is not None:
            by_external.setdefault(remote.external_id, []).append(remote)
    for line in client.export_traces():
        try:
            [trace] = parse_traces(line.encode(), "stash").traces
        except TraceFormatError:
            # Asked for by itself it is named in the error.
            continue
        found = by_external.get(trace.id, ())
        if len(found) == 1 and missing.pop(found[0].id, None) is not None:
            yield Read(found[0], trace)


def trace_of(detail: TraceShape) -> Trace:
    return Trace(
        id=detail.external_id or detail.id,
        title=detail.title,
        metadata=detail.metadata or {},
        steps=views.steps(detail),
    )


def notes_of(detail: TraceShape, local_trace_id: str) -> list[Note]:
    places = {step.id: step.index for step in detail.steps}
    return [
        Note(detail.id, row.id, _annotation(row, local_trace_id, _place(row, places)))
        for row in detail.annotations
        if row.step_id is None or row.step_id in places
    ]


def _place(row: AnnotationShape, places: dict[str, int]) -> int | None:
    return None if row.step_id is None else places[row.step_id]


def note_of(row: ExportedAnnotationShape, local_trace_id: str) -> Note:
    return Note(row.trace_id, None, _annotation(row, local_trace_id, row.step_index))


def _annotation(
    row: AnnotationShape | ExportedAnnotationShape, local_trace_id: str, step_index: int | None
) -> Annotation:
    author = row.author_name if isinstance(row, AnnotationShape) else row.author
    made = make_annotation(
        trace_id=local_trace_id,
        created_at=row.created_at,
        step_index=step_index,
        rating=row.rating,
        comment=row.comment,
        quote=_quote(row.quote),
        author=author,
    )
    return made.model_copy(
        update={"label_error": row.label_error, "label_error_note": row.label_error_note}
    )


def _quote(quote: QuoteShape | None) -> Quote | None:
    return None if quote is None else Quote(**quote.model_dump())
