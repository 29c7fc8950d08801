"""Annotations of the library to Stash, each once.

Before one is sent it is noted that it is, and what Stash has already is looked through: so neither
a lost answer nor a kill makes a second one. Flags follow, as Stash takes them by a change alone.
"""

from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass

from stash_mcp.backends.hybrid.contents import note_hash, said_alike, trace_hash
from stash_mcp.backends.hybrid.desk import Desk, batches
from stash_mcp.backends.hybrid.matching import matched, pair, readable
from stash_mcp.backends.hybrid.remote import Note, notes_of, trace_of
from stash_mcp.errors import (
    StashMisfitError,
    StashNotFoundError,
    StashRejectedError,
    StashUncertainError,
)
from stash_mcp.models import Annotation
from stash_mcp.stash.sent import AnnotationChange, AnnotationStart
from stash_mcp.stash.shapes import AnnotationShape, QuoteShape, TraceShape
from stash_mcp.storage.sync import SyncedAnnotation

BATCH_TRACES = 100

_POSTS = 2


@dataclass
class _Sheet:
    """One trace: what Stash has on it and what we have."""

    detail: TraceShape
    notes: list[Note]
    pairs: dict[str, Note]
    """By our annotation's id, what it is at Stash."""
    free: list[Note]
    """Those that are none of ours so far."""
    steps: dict[int, str]


class NotePush:
    def __init__(self, desk: Desk, hashes: Mapping[str, str], gone: Container[str] = ()) -> None:
        """hashes: of our traces, by id. gone: ids of annotations that were deleted at Stash."""
        self._desk = desk
        self._hashes = hashes
        self._gone = gone

    def run(self, places: Mapping[str, str]) -> None:
        """The annotations on these traces; remote ids by local ids."""
        for batch in batches(places.items(), BATCH_TRACES):
            for local_id, open_notes in self._open(dict(batch)):
                self._send(local_id, places[local_id], open_notes)

    def _open(self, places: dict[str, str]) -> Iterator[tuple[str, list[Annotation]]]:
        """By trace, those that are to be sent, or were flagged or unflagged here."""
        desk = self._desk
        rows = desk.store.annotations_on(places.values())
        agreed = {row.local_id: row.hash for found in rows.values() for row in found}
        waiting: dict[str, list[Annotation]] = {}
        for note in desk.library.annotations(list(places)):
            if note.id in self._gone and not desk.force:
                desk.tally.annotations_gone += 1
            elif agreed.get(note.id) == note_hash(note) and note.id not in self._gone:
                desk.tally.annotation("unchanged")
            else:
                waiting.setdefault(note.trace_id, []).append(note)
        yield from waiting.items()

    def _send(self, local_id: str, remote_id: str, open_notes: list[Annotation]) -> None:
        desk = self._desk
        try:
            detail = desk.client.get_trace(remote_id)
        except StashNotFoundError:
            desk.tally.gone += 1
            return
        except StashMisfitError as error:
            desk.tally.refuse(local_id, str(error))
            return
        rows = {row.local_id: row for row in desk.store.annotations_on([remote_id])[remote_id]}
        sheet = self._sheet(detail, local_id, rows)
        same_steps = trace_hash(trace_of(detail)) == self._hashes[local_id]
        for note in open_notes:
            if note.step_index is not None and not same_steps:
                desk.tally.conflict(local_id, "it has a comment on a step that changed at Stash")
                continue
            try:
                self._send_one(note, rows.get(note.id), sheet)
            except (StashRejectedError, StashMisfitError) as error:
                desk.tally.refuse(local_id, str(error))

    def _sheet(
        self, detail: TraceShape, local_id: str, rows: Mapping[str, SyncedAnnotation]
    ) -> _Sheet:
        local = {note.id: note for note in self._desk.library.annotations([local_id])}
        notes = notes_of(detail, local_id)
        found = matched(notes, list(rows.values()), local)
        known = {row.local_id: note for note, row in zip(notes, found, strict=True) if row}
        free = [note for note, row in zip(notes, found, strict=True) if row is None]
        steps = {step.index: step.id for step in detail.steps}
        return _Sheet(detail, notes, known, free, steps)

    def _send_one(self, note: Annotation, row: SyncedAnnotation | None, sheet: _Sheet) -> None:
        theirs = sheet.pairs.get(note.id)
        if theirs is None and row is not None and not readable(sheet.detail, [row]):
            self._desk.tally.refuse(note.trace_id, "a comment on it cannot be read at Stash")
            return
        if row is not None and row.hash and theirs is None and not self._desk.force:
            # It was there a moment ago, and somebody deleted it.
            self._desk.tally.annotations_gone += 1
            return
        if theirs is not None and row is not None and row.hash:
            self._bring_up(note, row.hash, theirs)
            return
        theirs = theirs or self._equal(note, sheet)
        is_new = theirs is None
        if is_new and row is None and note.id in self._desk.elsewhere:
            self._desk.tally.elsewhere += 1
            return
        self._desk.tally.annotation("new" if is_new else "unchanged")
        if self._desk.dry_run:
            return
        if theirs is None:
            theirs = self._post(note, sheet)
        self._desk.store.put_annotations([pair(theirs, note.id)])
        if note_hash(theirs.annotation) != note_hash(note):
            self._patch(note, theirs)

    def _equal(self, note: Annotation, sheet: _Sheet) -> Note | None:
        """One at Stash that says the same and is none of ours yet; it is from now on."""
        for known in sheet.free:
            if said_alike(known.annotation, note):
                sheet.free.remove(known)
                return known
        return None

    def _bring_up(self, note: Annotation, agreed: str, theirs: Note) -> None:
        """Its flag changed here."""
        desk, there = self._desk, note_hash(theirs.annotation)
        if there not in (agreed, note_hash(note)) and not desk.force:
            desk.tally.conflict(note.trace_id, "a comment on it changed here and at Stash")
            return
        is_same = there == note_hash(note)
        desk.tally.annotation("unchanged" if is_same else "changed")
        if desk.dry_run:
            return
        if is_same:
            desk.store.put_annotations([pair(theirs, note.id)])
        else:
            self._patch(note, theirs)

    def _post(self, note: Annotation, sheet: _Sheet) -> Note:
        remote_id = sheet.detail.id
        self._desk.store.put_annotations(
            [SyncedAnnotation(note.id, remote_id, None, note.step_index, "", "")]
        )
        order = AnnotationStart(
            step_id=None if note.step_index is None else sheet.steps[note.step_index],
            rating=note.rating,
            comment=note.comment,
            quote=None if note.quote is None else QuoteShape(**note.quote.model_dump()),
        )
        taken = {known.remote_id for known in sheet.notes}
        for _ in range(_POSTS):
            made = self._desk.client.annotate(remote_id, order)
            # After a lost answer the client may have found an equal one that was sent just before.
            if made.id not in taken:
                return self._noted(made, sheet, note.trace_id)
        raise StashUncertainError(
            f"Whether a comment on '{note.trace_id}' arrived is not known.",
            "Push again: what is there is not sent twice.",
            reached=True,
        )

    def _noted(self, made: AnnotationShape, sheet: _Sheet, local_id: str) -> Note:
        shown = sheet.detail.model_copy(update={"annotations": (made,)})
        [note] = notes_of(shown, local_id)
        sheet.notes.append(note)
        return note

    def _patch(self, note: Annotation, theirs: Note) -> None:
        change = AnnotationChange(
            rating=note.rating,
            comment=note.comment,
            label_error=note.label_error,
            label_error_note=note.label_error_note,
        )
        changed = self._desk.client.change_annotation(theirs.remote_id or "", change)
        fields = {
            "rating": changed.rating,
            "comment": changed.comment,
            "label_error": changed.label_error,
            "label_error_note": changed.label_error_note,
        }
        now = Note(
            theirs.remote_trace_id,
            theirs.remote_id,
            theirs.annotation.model_copy(update=fields),
        )
        self._desk.store.put_annotations([pair(now, note.id)])
