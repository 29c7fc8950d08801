"""Pulls and pushes: what each of them does, from its first look to its report."""

import contextlib
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime

from stash_mcp.backends.hybrid.desk import Desk, chosen
from stash_mcp.backends.hybrid.pulled_model import ModelPull, model_id, require_trained
from stash_mcp.backends.hybrid.pulling import TracePull
from stash_mcp.backends.hybrid.pushed_notes import NotePush
from stash_mcp.backends.hybrid.pushing import TracePush
from stash_mcp.backends.hybrid.remote import RemoteTrace, list_remote
from stash_mcp.backends.hybrid.report import Direction, Say, SyncReport, Tally
from stash_mcp.backends.ids import raw
from stash_mcp.errors import LibraryBusyError
from stash_mcp.settings import Settings
from stash_mcp.stash import StashClient
from stash_mcp.stash.shapes import RewardModelShape
from stash_mcp.storage.database import Database
from stash_mcp.storage.files import try_lock
from stash_mcp.storage.library import Library
from stash_mcp.storage.sync import SyncStore


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
            remotes = list_remote(desk.client)
            wanted = _wanted(desk, remotes, patterns, model)
            TracePull(desk).run(wanted)
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

        What changed on both sides stays as it is, unless force makes this side win.
        """
        with self._begun("push", dry_run, force) as desk:
            local_ids = desk.library.matching_ids(patterns)
            hashes = desk.hashes(local_ids)
            traces = TracePush(desk, list_remote(desk.client), hashes)
            traces.run()
            NotePush(desk, hashes).run(traces.places)
            return desk.tally.report()

    def local_ids(self, remote_trace_ids: Sequence[str]) -> tuple[str, ...]:
        """What these traces of Stash are called here, of those that were brought here."""
        pairs = {row.remote_id: row.local_id for row in self._store().traces()}
        return tuple(pairs[id] for id in remote_trace_ids if id in pairs)

    def _trained(self, reward_model: str) -> RewardModelShape:
        model = self.client.get_reward_model(raw(reward_model))
        require_trained(model)
        return model

    def _pull_model(self, desk: Desk, model: RewardModelShape) -> str:
        return ModelPull(*self._parts()).run(model, self.local_ids(model.trace_ids or ()))

    def _parts(self) -> tuple[StashClient, Settings, Callable[[], datetime], Say]:
        return self.client, self._settings, self._clock, self._say

    def _store(self) -> SyncStore:
        server = str(self.client.address.base).rstrip("/")
        return SyncStore(Database(self._settings.library_path), server)

    @contextlib.contextmanager
    def _begun(self, direction: Direction, dry_run: bool, force: bool) -> Iterator[Desk]:
        with try_lock(self._settings.home / "sync.lock") as ours:
            if not ours:
                raise LibraryBusyError(
                    "Another pull or push is under way on this library.", "Wait until it is done."
                )
            database = Database(self._settings.library_path)
            tally = Tally(direction, dry_run)
            yield Desk(self.client, Library(database), self._store(), tally, force, self._say)


def _wanted(
    desk: Desk,
    remotes: dict[str, RemoteTrace],
    patterns: Sequence[str] | None,
    model: RewardModelShape | None,
) -> list[RemoteTrace]:
    if patterns is None and model is None:
        return list(remotes.values())
    ids = chosen(desk, remotes, patterns or ())
    # Of those that a model learned from some may be deleted by now.
    ids |= set(model.trace_ids or ()) & remotes.keys() if model else set()
    return [remote for remote in remotes.values() if remote.id in ids]
