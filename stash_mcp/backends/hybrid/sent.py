"""What conversations of the library are called at Stash, for what Stash does with them."""

from collections.abc import Iterator, Mapping, Sequence

from stash_mcp.backends.hybrid.contents import note_hash, trace_hash
from stash_mcp.backends.hybrid.remote import list_remote
from stash_mcp.backends.hybrid.syncing import store_of
from stash_mcp.backends.ids import is_stash, shown
from stash_mcp.errors import InputError
from stash_mcp.models import Annotation
from stash_mcp.stash import StashClient
from stash_mcp.storage.database import Database
from stash_mcp.storage.library import Library
from stash_mcp.storage.sync import SyncedAnnotation

_NAMED = 5
_PUSH = (
    "Send them there first (stash-skills push, or sync_with_stash with action=push), or train with "
    "backend=local. Nothing was sent."
)
_PUSH_AGAIN = (
    "Push them again; or name them by their ids of Stash (stash:...), to train on what it has. "
    "Nothing was sent."
)


def at_stash(database: Database, client: StashClient, trace_ids: Sequence[str]) -> tuple[str, ...]:
    """The ids of Stash for these: ids and patterns of the library are put in its words, those of
    Stash stay as they are.

    NotFoundError for what the library does not have; InputError, with the ids, for what is not at
    Stash, and for what is another thing here than there.
    """
    patterns = [id for id in trace_ids if not is_stash(id)]
    if not patterns:
        return tuple(trace_ids)
    library = Library(database)
    local_ids = library.matching_ids(patterns)
    remotes = list_remote(client)
    store = store_of(client, database, remotes)
    pairs = {row.local_id: row for row in store.traces() if row.remote_id in remotes}
    missing = [id for id in local_ids if id not in pairs]
    if missing:
        raise InputError(f"Not at Stash, which trains on what it holds: {_listed(missing)}.", _PUSH)
    places = {id: pairs[id].remote_id for id in local_ids}
    changed = {
        trace.id for trace in library.traces(local_ids) if trace_hash(trace) != pairs[trace.id].hash
    }
    changed |= set(_noted_since(library, store.annotations_on(places.values()), places))
    if changed:
        raise InputError(
            f"Changed or commented on here since they went to Stash: {_listed(sorted(changed))}.",
            _PUSH_AGAIN,
        )
    given = (id for id in trace_ids if is_stash(id))
    return (*given, *(shown(remote_id) for remote_id in places.values()))


def _noted_since(
    library: Library, rows: Mapping[str, Sequence[SyncedAnnotation]], places: Mapping[str, str]
) -> Iterator[str]:
    """Ids of the traces with an annotation that Stash does not have as it is here. What somebody
    deleted there is meant to be missing."""
    agreed = {row.local_id: row for found in rows.values() for row in found}
    for note in library.annotations(list(places)):
        if not _is_agreed(agreed.get(note.id), note):
            yield note.trace_id


def _is_agreed(row: SyncedAnnotation | None, note: Annotation) -> bool:
    return row is not None and (row.gone or row.hash == note_hash(note))


def _listed(ids: Sequence[str]) -> str:
    more = len(ids) - _NAMED
    return ", ".join(ids[:_NAMED]) + (f" and {more} more" if more > 0 else "")
