"""Waiting for news of a run or a training without holding up the server's event loop."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Literal

import anyio
import anyio.to_thread

from stash_mcp.backends.base import Backend
from stash_mcp.errors import StashError
from stash_mcp.models import Event, Run
from stash_mcp.server.jobs import Job, find_job, seconds_to_next_look

Until = Literal["news", "end"]
LATE_SECONDS = 5.0
"""For which an answer of Stash is waited for beyond the end of the wait."""
ReportProgress = Callable[[float, float | None, str | None], Awaitable[None]]


@dataclass(frozen=True)
class Sight:
    """The job at one moment; `events` are those after the number that was asked for."""

    job: Job
    events: list[Event]
    last_event: int

    def unreached(self, problem: str) -> "Sight":
        """The same, once Stash could not be asked again."""
        words = f"Shown as it was last seen: {problem}"
        return replace(self, job=self.job.model_copy(update={"as_seen": words}))


class Watch:
    """Looks at one job again and again, reading only the events that it has not seen."""

    def __init__(self, backend: Callable[[], Backend], job_id: str, after_event: int) -> None:
        self._backend = backend
        self._job_id = job_id
        self._events: list[Event] = []
        self._last_event = after_event

    def look(self) -> Sight:
        """Blocking; to be called by one thread at a time."""
        backend = self._backend()
        # The job before its events: once its end is seen, its last event is too.
        job = find_job(backend, self._job_id)
        new = backend.events(self._job_id, after=self._last_event)
        self._events += new
        if new:
            self._last_event = new[-1].number
        return Sight(job, list(self._events), self._last_event)


async def wait_for_news(
    watch: Watch,
    seconds: float,
    until: Until,
    poll_seconds: float,
    report: ReportProgress,
    clock: Callable[[], datetime],
    *,
    known_events: bool = False,
) -> Sight:
    """The first sight of the job with news in it, or the one after `seconds`.

    News is another status, an event, and always the job's end or that it waits for the agent;
    until `end`, only these two. A job of Stash that cannot be asked for meanwhile is shown as it
    was last seen, with the reason. poll_seconds: between two looks at a job of this machine.
    known_events: the events that the first look finds are news already.
    """
    first = sight = await anyio.to_thread.run_sync(watch.look)
    seen = 0 if known_events else len(first.events)
    reporter = _Reporter(report)
    deadline = anyio.current_time() + seconds
    looks, looker = 1, _Looker(watch, deadline)
    while not _is_news(first, sight, seen, until):
        await reporter.tell(sight.job)
        left = deadline - anyio.current_time()
        if left <= 0:
            break
        pause = seconds_to_next_look(sight.job, looks, poll_seconds, clock())
        await anyio.sleep(min(pause, left))
        sight = await looker.after(sight)
        looks += 1
    return sight


def _is_news(first: Sight, sight: Sight, seen: int, until: Until) -> bool:
    job = sight.job
    if first.job.as_seen:
        # It is not asked for, so nothing can come of a wait.
        return True
    if job.status.is_final or (isinstance(job, Run) and job.reflections_waiting):
        return True
    if until == "end":
        return False
    return sight.job.status != first.job.status or len(sight.events) > seen


class _Looker:
    """Looks again, and keeps to what Stash asks for and to the end of the wait."""

    def __init__(self, watch: Watch, deadline: float) -> None:
        self._watch = watch
        self._deadline = deadline
        self._not_before = 0.0

    async def after(self, last: Sight) -> Sight:
        if last.job.backend == "local":
            return await anyio.to_thread.run_sync(self._watch.look)
        if anyio.current_time() < self._not_before:
            return last
        left = max(self._deadline - anyio.current_time(), 0)
        try:
            with anyio.fail_after(left + LATE_SECONDS):
                # Whoever answers too late is not waited for: the client would not be either.
                return await anyio.to_thread.run_sync(self._watch.look, abandon_on_cancel=True)
        except TimeoutError:
            return last.unreached("Stash has not answered since.")
        except StashError as error:
            if not error.passing:
                raise
            self._not_before = anyio.current_time() + (error.retry_after or 0)
            return last.unreached(str(error))


class _Reporter:
    """Sends progress notifications that only ever grow, as the protocol asks."""

    def __init__(self, report: ReportProgress) -> None:
        self._report = report
        self._last = -1

    async def tell(self, job: Job) -> None:
        progress = job.progress
        if progress is None:
            return
        done, total = progress.done, progress.total
        if isinstance(job, Run) and job.plan is not None:
            done, total = progress.metric_calls, job.plan.max_metric_calls
        if done > self._last:
            self._last = done
            await self._report(done, total or None, progress.phase)
