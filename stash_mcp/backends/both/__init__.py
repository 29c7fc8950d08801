"""Both sides behind one door: this machine, and Stash.

An id says where its thing lies. Where none does, the caller says it, or the setting. Nothing goes
to Stash but what a call for it is given, and its client is opened by the first one: who has no key,
no network or unreadable settings of Stash works on this machine all the same.
"""

import time
from collections.abc import Callable
from datetime import UTC, datetime

from stash_mcp.backends.both.lists import StashLists
from stash_mcp.backends.both.machine import Backends
from stash_mcp.backends.hybrid.sent import at_stash
from stash_mcp.backends.local import LocalBackend, open_local_backend
from stash_mcp.backends.stash import (
    BRIEF,
    FRESH_SECONDS,
    PATIENT,
    Opener,
    StashDoor,
    StashSide,
    Surroundings,
)
from stash_mcp.settings import Settings, StashAccess, stash_access
from stash_mcp.skills.sight import AgentSession
from stash_mcp.stash import open_client
from stash_mcp.storage.database import Database

__all__ = ["Backends", "both_sides", "open_backends"]


def open_backends(settings: Settings, session: AgentSession | None = None) -> Backends:
    """Over the library of `settings.home`, which is made where it is missing, and Stash as the
    environment names it.

    session: of the agent that it works for, where that is known.
    """
    local = open_local_backend(settings, session=session)
    return both_sides(
        settings,
        local,
        lambda: stash_access(user_home=settings.user_home),
        lambda: datetime.now(UTC),
    )


def both_sides(
    settings: Settings,
    local: LocalBackend,
    access: Callable[[], StashAccess],
    clock: Callable[[], datetime],
    opener: Opener = open_client,
    *,
    fresh_seconds: float = FRESH_SECONDS,
    monotonic: Callable[[], float] = time.monotonic,
) -> Backends:
    """access: where Stash is and the key for it, read anew each time. fresh_seconds: for which an
    answer about a job counts as one of now. monotonic: seconds that only grow.
    """
    surroundings = Surroundings(
        local.remote_runs,
        clock,
        settings.project_dir,
        local.wish,
        settings.home / "stash-start.lock",
        fresh_seconds,
        monotonic,
        lambda client, ids: at_stash(Database(settings.library_path), client, ids),
    )
    door, brief_door = StashDoor(access, PATIENT, opener), StashDoor(access, BRIEF, opener)
    brief = StashSide(brief_door, surroundings)
    lists = StashLists(brief, brief_door.has_key, monotonic)
    stash = StashSide(door, surroundings)
    return Backends(local, stash, brief, lists, settings.backend)
