"""Which annotation of Stash is which of ours."""

from collections.abc import Callable, Mapping, Sequence

from stash_mcp.backends.hybrid.contents import note_hash, said_alike
from stash_mcp.backends.hybrid.remote import Note
from stash_mcp.models import Annotation
from stash_mcp.stash.shapes import TraceShape
from stash_mcp.storage.sync import SyncedAnnotation


def pair(note: Note, local_id: str) -> SyncedAnnotation:
    """The row of the two once both sides hold what `note` says."""
    return SyncedAnnotation(
        local_id=local_id,
        remote_trace_id=note.remote_trace_id,
        remote_id=note.remote_id,
        step_index=note.annotation.step_index,
        created_at=note.annotation.created_at.isoformat(),
        hash=note_hash(note.annotation),
    )


def in_place(note: Note, row: SyncedAnnotation) -> bool:
    """Of the same time, on the same step: what never changes of an annotation."""
    annotation = note.annotation
    return (row.step_index, row.created_at) == (
        annotation.step_index,
        annotation.created_at.isoformat(),
    )


def readable(detail: TraceShape, rows: Sequence[SyncedAnnotation]) -> list[SyncedAnnotation]:
    """Without those of the trace's rows that may be of what cannot be read of it."""
    odd = {row.id for row in detail.unread}
    doubtful = odd | {None} if odd else odd
    return [row for row in rows if row.remote_id not in doubtful]


def matched(
    notes: Sequence[Note], rows: Sequence[SyncedAnnotation], local: Mapping[str, Annotation]
) -> list[SyncedAnnotation | None]:
    """The row of each note of one trace, by its id, else by place and words, else by place; and at
    last the row of one that was being sent when we were stopped, by its words. None for a new one.

    local: our annotations on the trace, by id.
    """
    found: list[SyncedAnnotation | None] = [None] * len(notes)
    free = list(rows)

    def take(fits: Callable[[Note, SyncedAnnotation], bool]) -> None:
        for number, note in enumerate(notes):
            if found[number] is not None:
                continue
            row = next((row for row in free if fits(note, row)), None)
            if row is not None:
                found[number] = row
                free.remove(row)

    take(lambda note, row: row.remote_id is not None and row.remote_id == note.remote_id)
    free[:] = [row for row in free if row.remote_id is None]
    take(lambda note, row: in_place(note, row) and row.hash == note_hash(note.annotation))
    take(lambda note, row: bool(row.hash) and in_place(note, row))
    take(
        lambda note, row: (
            not row.hash
            and row.local_id in local
            and said_alike(note.annotation, local[row.local_id])
        )
    )
    return found
