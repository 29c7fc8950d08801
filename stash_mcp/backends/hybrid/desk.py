"""What a pull and a push work with, and what both begin with."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cached_property
from itertools import islice
from typing import TypeVar

from stash_mcp.backends.hybrid.contents import trace_hash
from stash_mcp.backends.hybrid.remote import RemoteTrace
from stash_mcp.backends.hybrid.report import Say, Tally
from stash_mcp.backends.ids import raw
from stash_mcp.errors import NotFoundError
from stash_mcp.stash import StashClient
from stash_mcp.storage.library import Library
from stash_mcp.storage.sync import SyncedTrace, SyncStore

T = TypeVar("T")


@dataclass
class Desk:
    """dry_run: nothing is written on either side. force: the side that is read wins a conflict.
    remotes: what Stash has, by its ids. named: the conversations were given by id or pattern.
    """

    client: StashClient
    library: Library
    store: SyncStore
    tally: Tally
    force: bool
    say: Say
    remotes: dict[str, RemoteTrace]
    named: bool = False
    changed_here: set[str] = field(default_factory=set)
    """Remote ids of traces whose steps are not those of Stash any more."""

    @property
    def dry_run(self) -> bool:
        return self.tally.dry_run

    @cached_property
    def pairs(self) -> dict[str, SyncedTrace]:
        """By remote id, as they were when this began."""
        return {row.remote_id: row for row in self.store.traces()}

    @cached_property
    def elsewhere(self) -> frozenset[str]:
        """Ids of our traces and annotations that belong to another account or server alone, and
        that nobody asked to bring to this one."""
        traces, annotations = self.store.only_elsewhere()
        return frozenset() if self.named else traces | annotations

    @property
    def nameless(self) -> int:
        """How many traces of Stash have no readable id: what seems to be gone may be one."""
        return sum(remote.odd is not None for remote in self.remotes.values())

    def hashes(self, local_ids: Iterable[str]) -> dict[str, str]:
        """Of those of these traces that are in the library."""
        known = set(self.library.matching_ids(None))
        ids = [local_id for local_id in local_ids if local_id in known]
        return {trace.id: trace_hash(trace) for trace in self.library.traces(ids)}

    def local_id(self, remote: RemoteTrace) -> str:
        """What it is called here: by its external id, which of several one has, the others by
        their own."""
        pair = self.pairs.get(remote.id)
        if pair is not None:
            return pair.local_id
        if not remote.external_id:
            return remote.id
        pairs = ((id, self.pairs.get(id)) for id in remote.rivals)
        named = (id for id, row in pairs if row and row.local_id == remote.external_id)
        holder = next(named, next(iter(remote.rivals), remote.id))
        return remote.external_id if holder == remote.id else remote.id


def chosen(desk: Desk, remotes: dict[str, RemoteTrace], patterns: Sequence[str]) -> set[str]:
    """Ids of the remote traces that one of the patterns fits, by their id here or at Stash."""
    found: set[str] = set()
    for pattern in patterns:
        fitting = {
            remote.id
            for remote in remotes.values()
            if fnmatchcase(desk.local_id(remote), pattern) or fnmatchcase(remote.id, raw(pattern))
        }
        if not fitting:
            raise NotFoundError(
                f"Stash has no trace '{pattern}'.",
                "Leave the pattern out to take all of them, or look at their ids.",
            )
        found |= fitting
    return found


def batches(items: Iterable[T], size: int) -> Iterator[list[T]]:
    rest = iter(items)
    while batch := list(islice(rest, size)):
        yield batch
