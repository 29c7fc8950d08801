"""Which annotations that were at Stash are not there any more: somebody deleted them.

Deleting is never passed on. It is noted once, so that a later round need not ask again. An export
of annotations has no ids, so it only says where to look: what it lacks is looked at by itself.
"""

from collections import Counter
from collections.abc import Mapping

from stash_mcp.backends.hybrid.desk import Desk
from stash_mcp.backends.hybrid.matching import matched, readable
from stash_mcp.backends.hybrid.remote import Note, note_of, notes_of
from stash_mcp.errors import StashError, StashMisfitError, StashNotFoundError
from stash_mcp.stash.shapes import TraceShape
from stash_mcp.storage.sync import SyncedAnnotation

FEW = 3
"""Conversations up to which each is asked for by itself; more are looked through by one export."""
_EXPORTS = 3

_Spot = tuple[str, int | None, str]
"""Remote trace, step and time: what never changes of an annotation."""


class Standing:
    """What should be at Stash, of which everything that is seen there is taken off."""

    def __init__(self, desk: Desk, local_ids: Mapping[str, str]) -> None:
        """local_ids: of the traces to look at, by remote ids."""
        self._desk = desk
        self._local_ids = local_ids
        rows = desk.store.annotations_on(local_ids)
        self.known_gone = {row.local_id for found in rows.values() for row in found if row.gone}
        self._awaited = Counter(_spot(row) for found in rows.values() for row in found if _is(row))

    @property
    def doubtful(self) -> set[str]:
        """Remote ids of the traces on which something was not seen."""
        return {spot[0] for spot, count in self._awaited.items() if count > 0}

    def saw(self, note: Note) -> None:
        """One of an export."""
        spot = note.remote_trace_id, note.annotation.step_index, _time(note)
        if spot in self._awaited:
            self._awaited[spot] -= 1

    def look(self) -> set[str]:
        """Ids of our annotations that are not there, new ones and those that were known."""
        found: set[str] = set()
        for remote_id in sorted(self.doubtful):
            try:
                detail = self._desk.client.get_trace(remote_id)
            except (StashNotFoundError, StashMisfitError):
                # Gone with everything on it, which is told of the conversation; or not to be read.
                continue
            found |= gone_on(self._desk, detail, self._local_ids[remote_id])
        return found | self.known_gone


def gone_of(desk: Desk, places: Mapping[str, str]) -> set[str]:
    """Ids of our annotations on these traces that are not at Stash any more. A few requests,
    however many traces: one by one up to FEW, else the export, and what it lacks.

    places: remote ids, by ours.
    """
    local_ids = {remote_id: local_id for local_id, remote_id in places.items()}
    standing = Standing(desk, local_ids)
    if len(standing.doubtful) > FEW:
        standing = _looked_through(desk, local_ids)
    return standing.look()


def gone_on(desk: Desk, detail: TraceShape, local_trace_id: str) -> set[str]:
    """Of one trace, noted unless this is a dry run."""
    rows = [row for row in desk.store.annotations_on([detail.id])[detail.id] if _is(row)]
    local = {note.id: note for note in desk.library.annotations([local_trace_id])}
    seen = {row for row in matched(notes_of(detail, local_trace_id), rows, local) if row}
    gone = {row.local_id for row in readable(detail, rows) if row not in seen}
    if gone and not desk.dry_run:
        desk.store.mark_gone(gone)
    return gone


def _looked_through(desk: Desk, local_ids: Mapping[str, str]) -> Standing:
    for attempt in range(1, _EXPORTS + 1):
        standing = Standing(desk, local_ids)
        try:
            # What cannot be read is looked at by itself.
            for row in desk.client.export_annotations(lambda unread: None):
                if row.trace_id in local_ids:
                    standing.saw(note_of(row, local_ids[row.trace_id]))
            return standing
        except StashError as error:
            # What never began was asked for again by the client.
            if not (error.passing and error.begun) or attempt == _EXPORTS:
                raise
            desk.client.rest(attempt, error)
    raise AssertionError("unreachable")


def _is(row: SyncedAnnotation) -> bool:
    """Whether both sides had it, as far as is known."""
    return bool(row.hash) and not row.gone


def _spot(row: SyncedAnnotation) -> _Spot:
    return row.remote_trace_id, row.step_index, row.created_at


def _time(note: Note) -> str:
    return note.annotation.created_at.isoformat()
