"""Annotations of Stash into the library.

An export has no ids of annotations. One that is where none was is new and needs none; for one that
changed, the conversation is asked for by itself, which tells them.
"""

from collections.abc import Mapping, Sequence

from stash_mcp.backends.hybrid.contents import note_hash, said_alike
from stash_mcp.backends.hybrid.desk import Desk, batches
from stash_mcp.backends.hybrid.matching import in_place, matched, pair
from stash_mcp.backends.hybrid.remote import Note, note_of, notes_of
from stash_mcp.backends.hybrid.standing import Standing, gone_on
from stash_mcp.errors import AnnotationError, StashMisfitError, StashNotFoundError
from stash_mcp.models import Annotation
from stash_mcp.stash.shapes import TraceShape, Unread
from stash_mcp.storage.sync import SyncedAnnotation
from stash_mcp.traces.annotations import check_annotation

BATCH_NOTES = 500
COMMENTS_ON_OLD_STEPS = "its steps changed here, and Stash has new comments on the old ones"


class NotePull:
    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._held: set[str] = set()

    def take_export(self, local_ids: Mapping[str, str]) -> None:
        """The annotations on the traces whose remote ids these are, with their ids here."""
        self._desk.say("Reading the annotations.")
        unclear: dict[str, None] = {}
        standing = Standing(self._desk, local_ids)
        odd: list[Unread] = []
        exported = (
            note_of(row, local_ids[row.trace_id])
            for row in self._desk.client.export_annotations(odd.append)
            if row.trace_id in local_ids
        )
        for batch in batches(exported, BATCH_NOTES):
            for note in batch:
                standing.saw(note)
            unclear |= dict.fromkeys(self._take_batch(batch, unclear))
        self._desk.tally.annotations_gone += len(standing.look())
        unclear |= dict.fromkeys(self._tell(odd, local_ids))
        for remote_id in unclear:
            try:
                detail = self._desk.client.get_trace(remote_id)
            except StashNotFoundError:
                continue
            except StashMisfitError as error:
                self._desk.tally.refuse(local_ids[remote_id], error.problem)
                continue
            self._take(detail, local_ids[remote_id])

    def _tell(self, odd: Sequence[Unread], local_ids: Mapping[str, str]) -> list[str]:
        """Remote ids of the traces that have odd annotations: each by itself names them."""
        for row in odd:
            if row.trace_id is None:
                self._desk.tally.refuse("an annotation", row.why)
        return [id for row in odd if (id := row.trace_id) is not None and id in local_ids]

    def take_detail(self, detail: TraceShape, local_trace_id: str) -> None:
        """All annotations on one trace."""
        standing = Standing(self._desk, {detail.id: local_trace_id})
        gone = gone_on(self._desk, detail, local_trace_id) | standing.known_gone
        self._desk.tally.annotations_gone += len(gone)
        self._take(detail, local_trace_id)

    def _take(self, detail: TraceShape, local_trace_id: str) -> None:
        desk = self._desk
        for odd in detail.unread:
            desk.tally.refuse(local_trace_id, f"its annotation {odd.named}")
        notes = notes_of(detail, local_trace_id)
        rows = desk.store.annotations_on([detail.id])[detail.id]
        local = {note.id: note for note in desk.library.annotations([local_trace_id])}
        new: list[Note] = []
        known: list[SyncedAnnotation] = []
        for note, row in zip(notes, matched(notes, rows, local), strict=True):
            if row is None and not self._is_held(note):
                new.append(note)
            elif row is not None and row.local_id in local:
                known += self._update(note, row, local[row.local_id])
        self._write(known)
        self._add(new)

    def _take_batch(self, batch: Sequence[Note], unclear: Mapping[str, None]) -> set[str]:
        """Remote ids of the traces that have to be looked at closer."""
        rows = self._desk.store.annotations_on(note.remote_trace_id for note in batch)
        found: set[str] = set()
        new: list[Note] = []
        for note in batch:
            known = rows[note.remote_trace_id]
            here = [row for row in known if in_place(note, row)]
            if note.remote_trace_id in unclear:
                continue
            if any(row.hash == note_hash(note.annotation) for row in here):
                self._desk.tally.annotation("unchanged")
            elif not here and self._is_held(note):
                continue
            elif here or any(not row.hash for row in known):
                found.add(note.remote_trace_id)
            else:
                new.append(note)
        self._add([note for note in new if note.remote_trace_id not in found])
        return found

    def _is_held(self, note: Note) -> bool:
        """Whether it is about a step that is another one here; said once for each trace."""
        remote_id = note.remote_trace_id
        if note.annotation.step_index is None or remote_id not in self._desk.changed_here:
            return False
        if remote_id not in self._held:
            self._held.add(remote_id)
            self._desk.tally.conflict(note.annotation.trace_id, COMMENTS_ON_OLD_STEPS)
        return True

    def _update(
        self, note: Note, row: SyncedAnnotation, local: Annotation
    ) -> list[SyncedAnnotation]:
        """Bring ours up to date; the row that says so, if there is something to say."""
        desk, theirs, ours = self._desk, note_hash(note.annotation), note_hash(local)
        if theirs in (row.hash, ours):
            # Where ours changed since, the row goes on saying what both last had.
            desk.tally.annotation("unchanged")
            is_known = (row.hash, row.remote_id) == (theirs, note.remote_id)
            return [] if is_known else [pair(note, local.id)]
        if said_alike(note.annotation, local) and not row.hash:
            # It was being sent, and its flag is still to come.
            return [pair(note, local.id)]
        if ours != row.hash and not desk.force:
            desk.tally.conflict(local.trace_id, "a comment on it changed here and at Stash")
            return []
        desk.tally.annotation("changed")
        if not desk.dry_run:
            taken = ("rating", "comment", "label_error", "label_error_note")
            fields = {name: getattr(note.annotation, name) for name in taken}
            desk.library.rewrite_annotation(local.model_copy(update=fields))
        return [pair(note, local.id)]

    def _add(self, notes: Sequence[Note]) -> None:
        if not self._desk.dry_run:
            notes = self._stored(notes)
            self._write([pair(note, note.annotation.id) for note in notes])
        self._desk.tally.annotation("new", len(notes))

    def _stored(self, notes: Sequence[Note]) -> Sequence[Note]:
        """Those that fit their traces here."""
        library, rows = self._desk.library, [note.annotation for note in notes]
        try:
            library.add_annotations(rows, check_annotation)
        except AnnotationError as error:
            if len(notes) == 1:
                self._desk.tally.refuse(rows[0].trace_id, str(error))
                return []
            return [note for one in notes for note in self._stored([one])]
        return notes

    def _write(self, rows: Sequence[SyncedAnnotation]) -> None:
        if rows and not self._desk.dry_run:
            self._desk.store.put_annotations(rows)
