"""A job's progress on its way to the library, a few times a second at most."""

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

from stash_mcp.models import Progress
from stash_mcp.runs.store import JobStore

REPORT_SECONDS = 0.5
_COUNTS = ("metric_calls", "max_metric_calls", "proposals", "refused_proposals", "candidates")
_SCORES = ("seed_score", "best_score")


class Tracker:
    """Holds the job's progress and stores it; `monotonic` gives seconds that never go back."""

    def __init__(
        self,
        store: JobStore,
        job_id: str,
        monotonic: Callable[[], float],
        before: Progress | None = None,
        said: Iterable[str] = (),
    ) -> None:
        """before: progress of an earlier attempt, of which what was spent counts on, and how far
        it came is shown until this one is there. said: its events, which are not told again where
        this attempt comes to the same."""
        self._before = before = before or Progress()
        self.progress = Progress(
            task_usage=before.task_usage, reflection_usage=before.reflection_usage
        )
        self._seconds_before = before.active_seconds
        self._started = monotonic()
        self._store = store
        self._job_id = job_id
        self._monotonic = monotonic
        self._reported = float("-inf")
        self._said = Counter(said)
        self._pauses = 0
        self._paused_at = 0.0
        self._paused_seconds = 0.0

    def update(self, *, at_once: bool = False, **changes: Any) -> None:
        """Change fields of the progress; stored now if `at_once` or the last time is long ago."""
        changes["active_seconds"] = self.active_seconds()
        self.progress = self.progress.model_copy(update=changes)
        now = self._monotonic()
        if at_once or now - self._reported >= REPORT_SECONDS:
            self._store.report(self._job_id, self._shown())
            self._reported = now

    def active_seconds(self) -> float:
        """Of all attempts so far, without the pauses."""
        now = self._paused_at if self._pauses else self._monotonic()
        return self._seconds_before + now - self._started - self._paused_seconds

    def pause(self) -> None:
        """Count no time until `go_on` was called as often as this."""
        if not self._pauses:
            self._paused_at = self._monotonic()
        self._pauses += 1

    def go_on(self) -> None:
        self._pauses -= 1
        if not self._pauses:
            self._paused_seconds += self._monotonic() - self._paused_at

    def event(self, message: str) -> None:
        if self._said[message]:
            self._said[message] -= 1
            return
        self._store.report(self._job_id, self._shown())
        self._store.add_event(self._job_id, message)

    def _shown(self) -> Progress:
        """An attempt that goes the way of an earlier one again does not look like a new start."""
        now, before = self.progress, self._before
        if now.phase == "finished":
            return now
        further = {name: max(getattr(now, name), getattr(before, name)) for name in _COUNTS}
        known = {
            name: max(scores)
            for name in _SCORES
            if (scores := [s for s in (getattr(now, name), getattr(before, name)) if s is not None])
        }
        return now.model_copy(update={**further, **known})
