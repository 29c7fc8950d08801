"""What the parts of the Stash backend share: the client, the library's knowledge of runs, and the
answers that were given a moment ago.
"""

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Generic, TypeVar

from stash_mcp.backends.base import RunOrder
from stash_mcp.backends.ids import is_stash, raw
from stash_mcp.backends.stash.opening import StashDoor
from stash_mcp.errors import NotFoundError
from stash_mcp.models import InstallWish
from stash_mcp.runs.remote import RemoteRuns
from stash_mcp.stash import StashClient
from stash_mcp.stash.shapes import JobShape, RewardModelShape, RunShape

FRESH_SECONDS = 2.0
"""One answer of a tool may look at a job several times; Stash is asked once."""
_KEPT = 256

S = TypeVar("S", bound=JobShape)


class Recent(Generic[S]):
    """Jobs as Stash last told them: those that are over for good, the others for moments."""

    def __init__(self, fresh_seconds: float, monotonic: Callable[[], float]) -> None:
        self._fresh_seconds = fresh_seconds
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._jobs: OrderedDict[str, tuple[float, S]] = OrderedDict()

    def __contains__(self, id: str) -> bool:
        with self._lock:
            return id in self._jobs

    def find(self, id: str) -> S | None:
        with self._lock:
            at, job = self._jobs.get(id, (0.0, None))
        if job is None or job.is_final or self._monotonic() - at < self._fresh_seconds:
            return job
        return None

    def clear(self) -> None:
        with self._lock:
            self._jobs.clear()

    def keep(self, job: S) -> S:
        with self._lock:
            self._jobs[job.id] = (self._monotonic(), job)
            self._jobs.move_to_end(job.id)
            while len(self._jobs) > _KEPT:
                self._jobs.popitem(last=False)
        return job


def _as_they_are(client: StashClient, trace_ids: Sequence[str]) -> Sequence[str]:
    return trace_ids


@dataclass(frozen=True)
class Surroundings:
    """remote_runs: what the library knows of Stash's runs. project_dir: where a relative path
    starts. wish_of: what is to happen to the skill of an ordered run; refuses targets that are
    unknown. start_lock: a file that is held while a run is started. fresh_seconds: for which an
    answer about a job counts as one of now. monotonic: seconds that only grow. at_stash: puts
    Stash's ids in the place of those of this library, before a training; see hybrid/sent.py.
    """

    remote_runs: RemoteRuns
    clock: Callable[[], datetime]
    project_dir: Path
    wish_of: Callable[[RunOrder], InstallWish]
    start_lock: Path
    fresh_seconds: float = FRESH_SECONDS
    monotonic: Callable[[], float] = time.monotonic
    at_stash: Callable[[StashClient, Sequence[str]], Sequence[str]] = _as_they_are


class Desk:
    """Any thread may call it."""

    def __init__(self, door: StashDoor, surroundings: Surroundings) -> None:
        self.door = door
        self._around = surroundings
        fresh = surroundings.fresh_seconds, surroundings.monotonic
        self._runs: Recent[RunShape] = Recent(*fresh)
        self._models: Recent[RewardModelShape] = Recent(*fresh)
        self._told_by: StashClient | None = None
        self._unread: str | None = None

    def unreached(self) -> str | None:
        """What the last list of runs or reward models left out, in words."""
        return self._unread

    @property
    def _client(self) -> StashClient:
        client = self.door.client()
        if client is not self._told_by:
            # Another address or key: what was told to the former one is not for this one.
            self._told_by = client
            self._runs.clear()
            self._models.clear()
        return client

    @property
    def kept_runs(self) -> RemoteRuns:
        """What the library knows of Stash's runs, as it is to who asks the one that is set."""
        return self._around.remote_runs.at(self.door.server())


def id_at_stash(id: str, noun: str) -> str:
    """As Stash has it; NotFoundError for an id that is none of Stash's."""
    if not is_stash(id):
        raise NotFoundError(
            f"'{id}' is no {noun} of Stash: its ids begin with 'stash:'.",
            "It lies on this machine; push it to Stash first (stash-skills push), or name one that "
            "the lists with backend=stash show.",
        )
    return raw(id)
