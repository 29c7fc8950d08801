"""Telling of what was installed, held back or put off by itself.

A server tells its agent once of each thing that happened since it started, and of what nobody was
told before; so of two servers over one library both tell. A command tells what no command has told.
"""

import contextlib
from datetime import datetime, timedelta

from stash_mcp.backends.ids import is_stash
from stash_mcp.backends.local.skills import Skills
from stash_mcp.errors import StashSkillsError
from stash_mcp.models import Listener, Notice, Run
from stash_mcp.runs.installing import InstallQueue

NEWS_AGE = timedelta(days=1)


class Telling(Skills):
    def take_notices(self, listener: Listener = "agent") -> list[Notice]:
        """What was installed or staged since this listener was told; each is given out once.

        At a command only what ended lately: a person who works with the agent was told there.
        """
        since = None if listener == "command" or self._session is None else self._session.began_at
        with self._told_here.lock:
            return self._taken(listener, since)

    def _taken(self, listener: Listener, since: datetime | None) -> list[Notice]:
        queues = (InstallQueue(self._database), InstallQueue(self._database, "remote_runs"))
        # All that can fail comes before the first mark: after it they would be lost.
        untold = [(queue, self._new_of(queue, listener, since)) for queue in queues]
        late = {row.run_id for _, rows in untold for row in rows if self._is_late(row, listener)}
        told: list[Notice] = []
        for queue, rows in untold:
            # What cannot be marked now is told the next time.
            with contextlib.suppress(StashSkillsError):
                told += queue.mark_told(listener, rows, since) if rows else []
        if since is not None:
            for row in told:
                self._told_here.add(row)
        return [row for row in told if row.run_id not in late]

    def _new_of(
        self, queue: InstallQueue, listener: Listener, since: datetime | None
    ) -> list[Notice]:
        rows = queue.untold(listener, since)
        if since is not None:
            rows = [row for row in rows if self._told_here.is_new(row)]
        return [self._with_sight(row) for row in rows]

    def _is_late(self, notice: Notice, listener: Listener) -> bool:
        if listener == "agent":
            return False
        ended = self._ended(notice.run_id).finished_at
        return ended is not None and ended < self._clock() - NEWS_AGE

    def _with_sight(self, notice: Notice) -> Notice:
        """The notice of an installation, with whether the agent sees the skill now."""
        if notice.state != "installed":
            return notice
        rows = [row for row in self._manifest.of_run(notice.run_id) if row.kind == "install"]
        seen = dict.fromkeys(self._sight(row) for row in rows)
        return notice.model_copy(update={"note": " ".join((notice.note, *seen))})

    def _ended(self, run_id: str) -> Run:
        """A run of this machine, or one of Stash as it was last seen."""
        return self.remote_runs.get(run_id) if is_stash(run_id) else self.get_run(run_id)
