"""Conversations of the library to Stash: only those that it lacks or that changed here.

Stash drops the annotations on the steps that an import replaces, even by equal ones, so nothing
that is there already is sent again.
"""

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from stash_mcp.backends.hybrid.contents import compared, note_hash, said_alike, trace_hash
from stash_mcp.backends.hybrid.desk import Desk
from stash_mcp.backends.hybrid.matching import matched
from stash_mcp.backends.hybrid.remote import Note, Odd, Read, RemoteTrace, notes_of, read_traces
from stash_mcp.errors import (
    StashAnswerError,
    StashMisfitError,
    StashNotFoundError,
    StashRejectedError,
    StashTimeoutError,
)
from stash_mcp.models import Annotation
from stash_mcp.stash.shapes import TraceShape
from stash_mcp.storage.sync import SyncedAnnotation, SyncedTrace
from stash_mcp.traces.stash import export_trace

BATCH_TRACES = 100
BATCH_BYTES = 1_000_000
"""Of one request; a conversation that is larger goes alone."""

BOTH = "it changed here and at Stash"
ELSE_THERE = "Stash has another conversation of this id"
NO_ID = "it changed here, and Stash, which knows it by no id, cannot replace it"
NAMELESS = "it may be one that Stash lists without an id that can be read, so it is not sent"
NOT_READ = "what Stash has of it cannot be read, so nothing is sent over it"
SEVERAL = "it changed here, and Stash has several of this id, any of which it may replace"
LOSES_COMMENTS = "it changed here, and Stash has comments on its steps that are not here"


@dataclass(frozen=True)
class _Line:
    """A conversation on its way. replaces: id of the remote trace whose steps it replaces."""

    local_id: str
    hash: str
    text: str
    replaces: str | None


class TracePush:
    def __init__(self, desk: Desk, local_ids: Sequence[str]) -> None:
        """local_ids: of our traces that are to be at Stash."""
        self._desk = desk
        self._local_ids = local_ids
        self._pairs = {row.local_id: row for row in desk.pairs.values()}
        self._known = {local_id: remote for local_id in local_ids if (remote := self._at(local_id))}
        self._gone: Container[str] = ()
        self.hashes: dict[str, str] = {}
        """Of our traces that are at Stash, by id."""
        self.places: dict[str, str] = {}
        """Remote ids of the traces that both sides hold alike now, by local id."""

    @property
    def known(self) -> dict[str, str]:
        """Remote ids of the traces that were there when this began, by local id."""
        return {local_id: remote.id for local_id, remote in self._known.items()}

    def send_new(self) -> None:
        """Those that Stash lacks."""
        desk = self._desk
        to_send: dict[str, str | None] = {}
        for local_id in self._local_ids:
            is_paired = local_id in self._pairs
            if local_id in self._known:
                continue
            if is_paired and desk.nameless:
                desk.tally.refuse(local_id, NAMELESS)
            elif is_paired and not desk.force:
                desk.tally.gone += 1
            elif not is_paired and local_id in desk.elsewhere:
                desk.tally.elsewhere += 1
            else:
                to_send[local_id] = None
        self._forget_gone(to_send)
        self._send(to_send)

    def send_changed(self, gone: Container[str]) -> None:
        """Those that changed here. gone: ids of annotations that were deleted at Stash."""
        self._gone = gone
        self.hashes |= self._desk.hashes(self._known)
        unclear: dict[str, RemoteTrace] = {}
        for local_id, remote in self._known.items():
            pair = self._pairs.get(local_id)
            if not remote.odd and pair is not None and pair.hash == self.hashes[local_id]:
                self._is_there(local_id, remote.id)
            else:
                unclear[local_id] = remote
        self._send(self._looked_at(unclear))

    def _at(self, local_id: str) -> RemoteTrace | None:
        pair = self._pairs.get(local_id)
        named = self._by_external.get(local_id)
        if pair is None:
            return named
        # One that cannot be told by its id may be the one that seems to be gone.
        return self._desk.remotes.get(pair.remote_id) or (named if named and named.odd else None)

    @cached_property
    def _by_external(self) -> dict[str, RemoteTrace]:
        """Of several with one external id the one that is called so here."""
        desk, found = self._desk, dict[str, RemoteTrace]()
        for remote in desk.remotes.values():
            name = remote.external_id
            if name and (name not in found or desk.local_id(remote) == name):
                found[name] = remote
        return found

    def _looked_at(self, unclear: dict[str, RemoteTrace]) -> dict[str, str | None]:
        """Those that have to be sent, with the remote trace that each replaces."""
        local_ids = {remote.id: local_id for local_id, remote in unclear.items()}
        to_send: dict[str, str | None] = {}
        links: list[SyncedTrace] = []
        for read in read_traces(self._desk.client, unclear.values()):
            local_id, remote = local_ids[read.remote.id], read.remote
            if isinstance(read, Odd):
                self._desk.tally.refuse(local_id, f"{NOT_READ} ({read.why})")
                continue
            pair = self._pairs.get(local_id)
            now = self.hashes[local_id]
            verdict = compared(trace_hash(read.trace), pair.hash if pair else None, now)
            if verdict in ("same", "link"):
                links.append(SyncedTrace(local_id, remote.id, remote.external_id, now))
                self._is_there(local_id, remote.id)
            elif why := self._objection(read, local_id, verdict == "ours"):
                self._desk.tally.conflict(local_id, why)
            else:
                to_send[local_id] = remote.id
        if not self._desk.dry_run:
            self._desk.store.put_traces(links)
        return to_send

    def _objection(self, read: Read, local_id: str, is_ours: bool) -> str | None:
        """Why the trace at Stash is not replaced."""
        if read.remote.external_id != local_id:
            return NO_ID
        if read.remote.rivals:
            return SEVERAL
        if self._desk.force:
            return None
        if not is_ours:
            return BOTH if local_id in self._pairs else ELSE_THERE
        try:
            detail = read.detail or self._desk.client.get_trace(read.remote.id)
        except StashNotFoundError:
            return None
        except StashMisfitError as error:
            return f"{NOT_READ} ({error.problem})"
        return LOSES_COMMENTS if detail.unread or self._loses_comments(detail, local_id) else None

    def _loses_comments(self, detail: TraceShape, local_id: str) -> bool:
        desk = self._desk
        rows = desk.store.annotations_on([detail.id])[detail.id]
        local = {note.id: note for note in desk.library.annotations([local_id])}
        notes = notes_of(detail, local_id)
        return any(
            note.annotation.step_index is not None and _is_only_there(note, row, local)
            for note, row in zip(notes, matched(notes, rows, local), strict=True)
        )

    def _is_there(self, local_id: str, remote_id: str) -> None:
        self._desk.tally.trace("unchanged")
        self.places[local_id] = remote_id

    def _forget_gone(self, to_send: Iterable[str]) -> None:
        for local_id in to_send:
            pair = self._pairs.get(local_id)
            if pair is not None and not self._desk.dry_run:
                self._desk.store.forget_trace(pair.remote_id)

    # --- sending ---

    def _send(self, to_send: Mapping[str, str | None]) -> None:
        batch: list[_Line] = []
        size = 0
        for local_id, replaces in to_send.items():
            if self._desk.dry_run:
                self._would_send(local_id, is_new=replaces is None)
                continue
            trace = self._desk.library.trace(local_id)
            line = _Line(local_id, trace_hash(trace), export_trace(trace), replaces)
            length = len(line.text.encode())
            if batch and (len(batch) == BATCH_TRACES or size + length > BATCH_BYTES):
                self._send_batch(batch)
                batch, size = [], 0
            batch.append(line)
            size += length
        if batch:
            self._send_batch(batch)

    def _would_send(self, local_id: str, *, is_new: bool) -> None:
        """With its comments; of a replaced one those on its steps are sent again."""
        notes = self._desk.library.annotations([local_id])
        again = [note for note in notes if is_new or self._is_dropped(note)]
        self._desk.tally.trace("new" if is_new else "changed")
        self._desk.tally.annotation("new", len(again))

    def _is_dropped(self, note: Annotation) -> bool:
        return note.step_index is not None and (self._desk.force or note.id not in self._gone)

    def _send_batch(self, batch: Sequence[_Line]) -> None:
        """Halved where Stash takes too long for it, or refuses it for one of its conversations."""
        desk = self._desk
        desk.store.forget_steps(line.replaces for line in batch if line.replaces)
        data = "".join(f"{line.text}\n" for line in batch)
        try:
            answer = desk.client.import_traces(data, "stash", repeatable=True)
        except (StashTimeoutError, StashRejectedError) as error:
            if len(batch) > 1:
                half = len(batch) // 2
                self._send_batch(batch[:half])
                self._send_batch(batch[half:])
                return
            if isinstance(error, StashTimeoutError):
                raise
            desk.tally.refuse(batch[0].local_id, str(error))
            return
        if len(answer.trace_ids) != len(batch):
            raise StashAnswerError(
                f"Stash stored {len(answer.trace_ids)} of {len(batch)} conversations.",
                "Push again: what is there is not sent twice.",
                reached=True,
            )
        self._note(batch, answer.trace_ids)

    def _note(self, batch: Sequence[_Line], remote_ids: Sequence[str]) -> None:
        sent = list(zip(batch, remote_ids, strict=True))
        self._desk.store.put_traces(
            SyncedTrace(line.local_id, remote_id, line.local_id, line.hash)
            for line, remote_id in sent
        )
        for line, remote_id in sent:
            self._desk.tally.trace("changed" if line.replaces else "new")
            self.hashes[line.local_id] = line.hash
            self.places[line.local_id] = remote_id
        self._desk.say(f"Conversations at Stash by now: {len(self.places)}.")


def _is_only_there(
    note: Note, row: SyncedAnnotation | None, local: Mapping[str, Annotation]
) -> bool:
    """Whether Stash's annotation says something that ours, of which `row` knows, do not."""
    if row is None:
        return not any(said_alike(note.annotation, ours) for ours in local.values())
    theirs = note_hash(note.annotation)
    return bool(row.hash) and theirs not in (row.hash, note_hash(local[row.local_id]))
