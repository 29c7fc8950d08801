"""Pulls and pushes: what each of them does, from its first look to its report."""

import contextlib
from collections.abc import Callable, Container, Iterator, Sequence
from datetime import datetime

from stash_mcp.backends.hybrid.desk import Desk, chosen
from stash_mcp.backends.hybrid.pulled_model import ModelPull, model_id, require_trained
from stash_mcp.backends.hybrid.pulling import TracePull
from stash_mcp.backends.hybrid.pushed_notes import NotePush
from stash_mcp.backends.hybrid.pushing import TracePush
from stash_mcp.backends.hybrid.remote import RemoteTrace, list_remote
from stash_mcp.backends.hybrid.report import Direction, Say, SyncReport, Tally
from stash_mcp.backends.hybrid.standing import gone_of
from stash_mcp.backends.ids import raw
from stash_mcp.errors import LibraryBusyError
from stash_mcp.settings import Settings
from stash_mcp.stash import StashClient
from stash_mcp.stash.shapes import RewardModelShape
from stash_mcp.storage.database import Database
from stash_mcp.storage.files import try_lock
from stash_mcp.storage.library import Library
from stash_mcp.storage.sync import SyncStore
from stash_mcp.storage.sync_places import SyncPlaces


class Hybrid:
    """The library of `settings.home` and Stash. One pull or push at a time on a library."""

    def __init__(
        self,
        client: StashClient,
        settings: Settings,
        clock: Callable[[], datetime],
        say: Say = lambda words: None,
    ) -> None:
        self.client = client
        self._settings = settings
        self._clock = clock
        self._say = say

    def pull(
        self,
        patterns: Sequence[str] | None = None,
        *,
        reward_model: str | None = None,
        dry_run: bool = False,
        force: bool = False,
    ) -> SyncReport:
        """Bring conversations and their annotations here: those that a pattern fits, or those of
        the reward model, which comes with them, or all.

        What changed on both sides stays as it is, unless force makes Stash's side win.
        """
        model = None if reward_model is None else self._trained(reward_model)
        with self._begun("pull", dry_run, force) as desk:
            TracePull(desk).run(_wanted(desk, patterns, model))
            if patterns is None and model is None:
                missing = desk.pairs.keys() - desk.remotes.keys()
                desk.tally.gone = max(0, len(missing) - desk.nameless)
            local_model = None
            if model is not None and not dry_run:
                local_model = self._pull_model(desk, model)
            elif model is not None and ModelPull(*self._parts()).is_here(model.id):
                local_model = model_id(model.id)
            return desk.tally.report(local_model)

    def push(
        self,
        patterns: Sequence[str] | None = None,
        *,
        dry_run: bool = False,
        force: bool = False,
    ) -> SyncReport:
        """Send conversations and their annotations to Stash: those that a pattern fits, or all.

        What changed on both sides stays as it is, unless force makes this side win. What somebody
        deleted at Stash is sent again with force alone, and what belongs to another account or
        server of Stash only where a pattern fits it.
        """
        with self._begun("push", dry_run, force) as desk:
            desk.named = patterns is not None
            traces = TracePush(desk, desk.library.matching_ids(patterns))
            # First, so that a key that may not write is told before anything more is read.
            traces.send_new()
            gone = gone_of(desk, traces.known)
            traces.send_changed(gone)
            NotePush(desk, traces.hashes, gone).run(traces.places)
            return desk.tally.report()

    def local_ids(self, remote_trace_ids: Sequence[str]) -> tuple[str, ...]:
        """What these traces of Stash are called here, of those that were brought here."""
        store = store_of(self.client, self._database(), set(remote_trace_ids))
        pairs = {row.remote_id: row.local_id for row in store.traces()}
        return tuple(pairs[id] for id in remote_trace_ids if id in pairs)

    def _trained(self, reward_model: str) -> RewardModelShape:
        model = self.client.get_reward_model(raw(reward_model))
        require_trained(model)
        return model

    def _pull_model(self, desk: Desk, model: RewardModelShape) -> str:
        return ModelPull(*self._parts()).run(model, self.local_ids(model.trace_ids or ()))

    def _parts(self) -> tuple[StashClient, Settings, Callable[[], datetime], Say]:
        return self.client, self._settings, self._clock, self._say

    def _database(self) -> Database:
        return Database(self._settings.library_path)

    @contextlib.contextmanager
    def _begun(self, direction: Direction, dry_run: bool, force: bool) -> Iterator[Desk]:
        with try_lock(self._settings.home / "sync.lock") as ours:
            if not ours:
                raise LibraryBusyError(
                    "Another pull or push is under way on this library.", "Wait until it is done."
                )
            database, remotes = self._database(), list_remote(self.client)
            store = store_of(self.client, database, remotes, remember=not dry_run)
            tally = Tally(direction, dry_run)
            yield Desk(self.client, Library(database), store, tally, force, self._say, remotes)


def store_of(
    client: StashClient,
    database: Database,
    remote_ids: Container[str],
    *,
    remember: bool = True,
) -> SyncStore:
    """The pairs with the account that the client's key belongs to, which sees these traces."""
    server = str(client.address.base).rstrip("/")
    mark = client.sender.connection.key_mark
    return SyncStore(
        database, SyncPlaces(database, server).find(mark, remote_ids, remember=remember)
    )


def _wanted(
    desk: Desk,
    patterns: Sequence[str] | None,
    model: RewardModelShape | None,
) -> list[RemoteTrace]:
    remotes = desk.remotes
    if patterns is None and model is None:
        return list(remotes.values())
    ids = chosen(desk, remotes, patterns or ())
    # Of those that a model learned from some may be deleted by now.
    ids |= set(model.trace_ids or ()) & remotes.keys() if model else set()
    return [remote for remote in remotes.values() if remote.id in ids]
