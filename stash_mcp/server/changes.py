"""What has changed in the library since the last look, for clients that listen.

Looked at is only what somebody listens to: the runs whose addresses they named, and, for the list
of resources, the runs that were not over. Which runs there are is looked up more seldom, since
that reads them all.
"""

import contextlib
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from stash_mcp.backends.base import Backend
from stash_mcp.backends.ids import is_stash
from stash_mcp.errors import NotFoundError, StashError
from stash_mcp.models import Run
from stash_mcp.server.resource_uris import run_id_of

RELIST_SECONDS = 30.0
STASH_SECONDS = 15.0
"""Between two questions to Stash about a run that somebody listens to."""


@dataclass(frozen=True)
class Interest:
    """uris: of resources. lists: the list of resources is of interest too."""

    uris: frozenset[str] = frozenset()
    lists: bool = False

    def __or__(self, other: "Interest") -> "Interest":
        return Interest(self.uris | other.uris, self.lists or other.lists)


@dataclass(frozen=True)
class Changed:
    """uris: of the resources that read differently now. lists: a run has ended."""

    uris: tuple[str, ...] = ()
    lists: bool = False


class Changes:
    """Its methods block. library: None as long as there is none. clock: seconds that only grow."""

    def __init__(
        self,
        library: Callable[[], Backend | None],
        clock: Callable[[], float],
        relist_seconds: float = RELIST_SECONDS,
    ) -> None:
        self._library = library
        self._clock = clock
        self._relist_seconds = relist_seconds
        self._lock = threading.Lock()
        # How each run looked, as text; None where there was no such run.
        self._looks: dict[str, str | None] = {}
        self._over: dict[str, bool] | None = None
        self._listed_at = 0.0
        self._stash_runs: dict[str, tuple[float, Run | None]] = {}

    def remember(self, interest: Interest) -> None:
        """Note how things stand that were not looked at before: later looks compare with that."""
        with self._lock:
            backend = self._library()
            if interest.lists and self._over is None:
                self._over = self._relist(backend)
            for run_id in _run_ids(interest.uris):
                if run_id not in self._looks:
                    self._looks[run_id] = self._text(backend, run_id)

    def look(self, interest: Interest) -> Changed:
        """What is not as it was at the last look, or when it was remembered."""
        with self._lock:
            backend = self._library()
            updated = {run_id for run_id in _run_ids(interest.uris) if self._new(backend, run_id)}
            return Changed(
                tuple(uri for uri in sorted(interest.uris) if run_id_of(uri) in updated),
                interest.lists and self._has_ended(backend),
            )

    def _new(self, backend: Backend | None, run_id: str) -> bool:
        now = self._text(backend, run_id)
        before = self._looks.get(run_id, now)
        self._looks[run_id] = now
        return now != before

    def _has_ended(self, backend: Backend | None) -> bool:
        known = self._over
        if known is None or self._clock() - self._listed_at >= self._relist_seconds:
            self._over = self._relist(backend)
        else:
            self._over = {
                run_id: over or self._is_over(backend, run_id) for run_id, over in known.items()
            }
        before = self._over if known is None else known
        return any(over and not before.get(run_id) for run_id, over in self._over.items())

    def _relist(self, backend: Backend | None) -> dict[str, bool]:
        self._listed_at = self._clock()
        runs = [] if backend is None else backend.known_runs()
        for run in runs:
            if is_stash(run.id):
                self._stash_runs.setdefault(run.id, (float("-inf"), run))
        return {run.id: run.status.is_final for run in runs}

    def _text(self, backend: Backend | None, run_id: str) -> str | None:
        run = self._find(backend, run_id)
        # Without what says only that its worker lives.
        return None if run is None else run.model_dump_json(exclude={"heartbeat_at"})

    def _is_over(self, backend: Backend | None, run_id: str) -> bool:
        run = self._find(backend, run_id)
        return run is None or run.status.is_final

    def _find(self, backend: Backend | None, run_id: str) -> Run | None:
        if not is_stash(run_id):
            return _find(backend, run_id)
        now = self._clock()
        asked_at, run = self._stash_runs.get(run_id, (float("-inf"), None))
        if now - asked_at >= STASH_SECONDS:
            # Without a key or a network it stays as it was last seen, and others are told of all
            # the same.
            with contextlib.suppress(StashError):
                run = _find(backend, run_id)
            self._stash_runs[run_id] = now, run
        return run


def _run_ids(uris: Iterable[str]) -> set[str]:
    return {run_id for uri in uris if (run_id := run_id_of(uri)) is not None}


def _find(backend: Backend | None, run_id: str) -> Run | None:
    try:
        return None if backend is None else backend.get_run(run_id)
    except NotFoundError:
        return None
