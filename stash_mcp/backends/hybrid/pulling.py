"""Conversations of Stash into the library. What is here already is not stored again."""

from collections.abc import Iterable

from stash_mcp.backends.hybrid.contents import compared, said_alike, trace_hash
from stash_mcp.backends.hybrid.desk import Desk
from stash_mcp.backends.hybrid.pulled_notes import NotePull
from stash_mcp.backends.hybrid.remote import Odd, Read, RemoteTrace, notes_of, read_traces
from stash_mcp.errors import StashMisfitError, StashNotFoundError, TraceFormatError
from stash_mcp.models import Trace
from stash_mcp.storage.sync import SyncedTrace
from stash_mcp.traces.formats import parse_traces
from stash_mcp.traces.stash import export_trace

BATCH_TRACES = 200
BATCH_CHARACTERS = 4_000_000
_SAID_EVERY = 1000

BOTH = "it changed here and at Stash"
LOSES_COMMENTS = "it changed at Stash, and its steps have comments here that Stash does not have"


class TracePull:
    """A kill leaves whole batches; what they hold is found equal by the next pull."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._notes = NotePull(desk)
        self._hashes: dict[str, str] = {}
        self._traces: list[Trace] = []
        self._pairs: list[SyncedTrace] = []
        self._characters = 0

    def run(self, wanted: Iterable[RemoteTrace]) -> None:
        """These conversations and the annotations on them."""
        wanted = list(wanted)
        desk = self._desk
        self._hashes = desk.hashes(desk.local_id(remote) for remote in wanted)
        exported: dict[str, str] = {}
        for number, read in enumerate(read_traces(desk.client, wanted), start=1):
            local_id = desk.local_id(read.remote)
            if isinstance(read, Odd):
                desk.tally.refuse(local_id, read.why)
            elif not self._take(read):
                pass
            elif read.detail is None:
                exported[read.remote.id] = local_id
            else:
                self._flush()
                self._notes.take_detail(read.detail, local_id)
            if number % _SAID_EVERY == 0:
                desk.say(f"{number} of {len(wanted)} conversations are read.")
        self._flush()
        if exported:
            self._notes.take_export(exported)

    def _take(self, read: Read) -> bool:
        """Whether the annotations on it can follow."""
        desk, remote = self._desk, read.remote
        local_id = desk.local_id(remote)
        trace = read.trace.model_copy(update={"id": local_id})
        pair = desk.pairs.get(remote.id)
        new = trace_hash(trace)
        now = self._hashes.get(local_id)
        verdict = compared(new, pair.hash if pair else None, now)
        row = SyncedTrace(local_id, remote.id, remote.external_id, new)
        if verdict == "both" and desk.force:
            verdict = "theirs"
        elif verdict == "theirs" and self._loses_comments(read, local_id):
            return self._keep(local_id, LOSES_COMMENTS)
        match verdict:
            case "both":
                return self._keep(local_id, BOTH)
            case "ours":
                desk.changed_here.add(remote.id)
                desk.tally.trace("unchanged")
            case "same":
                desk.tally.trace("unchanged")
            case "link":
                desk.tally.trace("unchanged")
                self._add(None, row)
            case "new" | "theirs":
                if read.detail is not None and not self._is_sound(trace):
                    return False
                desk.tally.trace("new" if verdict == "new" else "changed")
                self._add(trace, row)
        return True

    def _keep(self, local_id: str, why: str) -> bool:
        self._desk.tally.conflict(local_id, why)
        return False

    def _is_sound(self, trace: Trace) -> bool:
        """Whether an import of a file would take it; a line of an export was read by that."""
        try:
            parse_traces(export_trace(trace).encode(), "stash")
        except (TraceFormatError, UnicodeEncodeError) as error:
            self._desk.tally.refuse(trace.id, str(error))
            return False
        return True

    def _loses_comments(self, read: Read, local_id: str) -> bool:
        """Replaced steps take their annotations with them, at Stash too, where they may have been
        sent again."""
        desk = self._desk
        ours = desk.library.annotations([local_id])
        on_steps = [note for note in ours if note.step_index is not None]
        if desk.force or not on_steps:
            return False
        try:
            detail = read.detail or desk.client.get_trace(read.remote.id)
        except (StashNotFoundError, StashMisfitError):
            return True
        theirs = [note.annotation for note in notes_of(detail, local_id)]
        for note in on_steps:
            equal = next((known for known in theirs if said_alike(known, note)), None)
            if equal is None:
                return True
            theirs.remove(equal)
        return False

    def _add(self, trace: Trace | None, row: SyncedTrace) -> None:
        self._pairs.append(row)
        if trace is not None:
            self._traces.append(trace)
            self._characters += sum(len(step.content) for step in trace.steps)
        if len(self._pairs) >= BATCH_TRACES or self._characters >= BATCH_CHARACTERS:
            self._flush()

    def _flush(self) -> None:
        if not self._desk.dry_run and self._pairs:
            self._desk.library.put_traces(self._traces)
            self._desk.store.put_traces(self._pairs)
        self._traces, self._pairs, self._characters = [], [], 0
