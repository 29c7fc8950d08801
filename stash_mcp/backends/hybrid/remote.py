"""What Stash has, read piece by piece: the list of ids, conversations, annotations.

A few conversations are asked for one by one, many come with the export. Only ids are held for all.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from stash_mcp.backends.stash import views
from stash_mcp.errors import StashError, StashMisfitError, StashNotFoundError, TraceFormatError
from stash_mcp.models import Annotation, Quote, Trace
from stash_mcp.stash import StashClient
from stash_mcp.stash.address import is_id
from stash_mcp.stash.client import MAX_PAGE
from stash_mcp.stash.shapes import (
    AnnotationShape,
    ExportedAnnotationShape,
    QuoteShape,
    TraceShape,
    Unread,
)
from stash_mcp.traces.annotations import make_annotation
from stash_mcp.traces.formats import parse_traces

FEW = 50
"""Conversations up to which each is asked for by itself."""
_LISTINGS = 3
_EXPORTS = 3


@dataclass(frozen=True)
class RemoteTrace:
    """external_id: what it was imported with; None where it had no id. rivals: the ids of all that
    have this external id, the oldest first; empty where it is the only one. odd: why it is not
    asked for; its id may be none of Stash's then.
    """

    id: str
    external_id: str | None
    rivals: tuple[str, ...] = ()
    odd: str | None = None


@dataclass(frozen=True)
class Read:
    """A conversation of Stash. detail: with its annotations, where it was asked for by itself."""

    remote: RemoteTrace
    trace: Trace
    detail: TraceShape | None = None


@dataclass(frozen=True)
class Odd:
    """A conversation of Stash that cannot be read. why: without a full stop."""

    remote: RemoteTrace
    why: str


@dataclass(frozen=True)
class Note:
    """An annotation of Stash as it would be here. remote_id: an export does not tell it."""

    remote_trace_id: str
    remote_id: str | None
    annotation: Annotation


def list_remote(client: StashClient) -> dict[str, RemoteTrace]:
    """Every trace by its id. Listed again where some went meanwhile, as others may be missed."""
    found: dict[str, RemoteTrace] = {}
    nameless: list[Unread] = []
    for _ in range(_LISTINGS):
        total, offset = 1, 0
        listed: set[str] = set()
        while offset < total:
            page = client.list_traces(limit=MAX_PAGE, offset=offset)
            total, offset = page.total, offset + MAX_PAGE
            rows = [RemoteTrace(row.id, row.external_id) for row in page.traces]
            rows += [_unread(row, nameless) for row in page.unread]
            if listed.issuperset(row.id for row in rows):
                # It promises more than it has.
                break
            found |= {row.id: row for row in rows}
            listed |= {row.id for row in rows}
        if len(found) >= total:
            break
    return _with_rivals(found)


def _unread(row: Unread, nameless: list[Unread]) -> RemoteTrace:
    """By its id it may be read all the same: that its row is odd is of no matter here."""
    if row.id is not None and is_id(row.id):
        return RemoteTrace(row.id, row.external_id)
    if row not in nameless:
        nameless.append(row)
    return RemoteTrace(f"(without id, {nameless.index(row) + 1})", row.external_id, odd=row.named)


def _with_rivals(found: dict[str, RemoteTrace]) -> dict[str, RemoteTrace]:
    """The list has the newest first."""
    by_external: dict[str, list[str]] = {}
    for remote in reversed(found.values()):
        if remote.external_id:
            by_external.setdefault(remote.external_id, []).append(remote.id)
    return {
        id: replace(remote, rivals=tuple(same))
        if len(same := by_external.get(remote.external_id or "", [])) > 1
        else remote
        for id, remote in found.items()
    }


def read_traces(client: StashClient, wanted: Iterable[RemoteTrace]) -> Iterator[Read | Odd]:
    """Those of them that are still there, each once, in any order.

    A broken export is begun again for what is missing. StashError where it stays broken.
    """
    missing: dict[str, RemoteTrace] = {}
    for remote in wanted:
        if remote.odd is None:
            missing[remote.id] = remote
        else:
            yield Odd(remote, remote.odd)
    if len(missing) > FEW:
        for attempt in range(1, _EXPORTS + 1):
            try:
                yield from _exported(client, missing)
                break
            except StashError as error:
                # What never began was asked for again by the client.
                if not (error.passing and error.begun) or attempt == _EXPORTS:
                    raise
                client.rest(attempt, error)
    for remote in list(missing.values()):
        try:
            detail = client.get_trace(remote.id)
        except StashNotFoundError:
            continue
        except StashMisfitError as error:
            yield Odd(remote, error.problem.rstrip("."))
            continue
        yield Read(remote, trace_of(detail), detail)


def _exported(client: StashClient, missing: dict[str, RemoteTrace]) -> Iterator[Read]:
    """Takes what it yields out of `missing`. A line that cannot be read, without an id, or with one
    that several have, is left for a request of its own, which tells what it is."""
    by_external = {
        remote.external_id: remote
        for remote in missing.values()
        if remote.external_id is not None and not remote.rivals
    }
    for line in client.export_traces(_is_asked_for_later):
        try:
            [trace] = parse_traces(line.encode(), "stash").traces
        except TraceFormatError:
            continue
        found = by_external.get(trace.id)
        if found is not None and missing.pop(found.id, None) is not None:
            yield Read(found, trace)


def _is_asked_for_later(row: Unread) -> None:
    """By what is missing in the end."""


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
