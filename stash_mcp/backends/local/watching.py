"""Finished skills into the agents' skills folders, by themselves.

`reconcile` looks which runs are finished and asked for it, and settles each once. The server, the
worker at its end and `stash-skills watch` all call it; a lock lets one at a time, and one that
died in the middle is done again, which changes nothing that was done.

Only what stands against the skill settles it as staged. What may pass (a full disk, a busy library,
another installation) leaves it waiting, for a later look.
"""

from collections.abc import Sequence
from pathlib import Path

from stash_mcp.backends.local import notes
from stash_mcp.backends.local.guards import Version, held_back, worse_than
from stash_mcp.backends.local.telling import Telling
from stash_mcp.errors import (
    InstallBusyError,
    NotFoundError,
    StashSkillsError,
    StorageError,
)
from stash_mcp.models import Candidate, Installation, InstallState, Notice, Run
from stash_mcp.runs.installing import InstallQueue
from stash_mcp.skills.history import file_state
from stash_mcp.skills.install import install_all
from stash_mcp.skills.journal import complete_if_free
from stash_mcp.skills.ownership import stands
from stash_mcp.skills.place import look
from stash_mcp.skills.records import record_of
from stash_mcp.skills.targets import Target, known_target
from stash_mcp.skills.versions import sha256
from stash_mcp.storage.files import try_lock


class Watching(Telling):
    def reconcile(self, *, at_once: bool = False) -> list[Notice]:
        """Settle what is finished; returns what was settled now."""
        complete_if_free(self._manifest, self._settings.backups_dir)
        queues = (InstallQueue(self._database), InstallQueue(self._database, "remote_runs"))
        if at_once:
            for queue in queues:
                queue.end_pauses()
        return [notice for queue in queues for notice in self._settle_all(queue)]

    def _settle_all(self, queue: InstallQueue) -> list[Notice]:
        settled: list[Notice] = []
        # Again after the lock is dropped: whoever was refused it meanwhile left its run to us.
        while queue.waiting(self._clock()):
            with try_lock(self._settings.home / "reconcile.lock") as ours:
                if not ours:
                    break
                settled += [
                    notice
                    for run_id in queue.waiting(self._clock())
                    if (notice := self._settle(queue, self._ended(run_id))) is not None
                ]
        return settled

    def _settle(self, queue: InstallQueue, run: Run) -> Notice | None:
        try:
            state, note = self._outcome(run)
        except (StorageError, InstallBusyError) as error:
            queue.put_off(run.id, notes.put_off(run, error, self._in_place(run)), self._clock())
            return None
        if not queue.settle(run.id, state, note, self._clock()):
            return None
        return Notice(run_id=run.id, state=state, note=note)

    def _outcome(self, run: Run) -> tuple[InstallState, str]:
        reason = held_back(run)
        if reason is not None:
            return "staged", notes.staged(run, reason)
        listed = self._candidates_of(run.id)
        best = next((row for row in listed if row.number == run.best_candidate), None)
        if best is None:
            missing = f"Its best candidate, number {run.best_candidate}, is not kept."
            return "staged", notes.staged(run, missing)
        targets = [
            known_target(self._settings, row.agent, row.scope, Path(row.skills_dir))
            for row in run.install.targets
        ]
        try:
            kept = self._kept(run, listed, targets)
            if kept is not None:
                return "staged", notes.staged(run, kept, self._in_place(run))
            written = install_all(
                best.skill,
                targets=targets,
                run_id=run.id,
                candidate=best.number,
                manifest=self._manifest,
                backups_dir=self._settings.backups_dir,
                force=False,
                now=self._clock(),
                by_itself=True,
                adopted=run.adopted,
            )
        except (StorageError, InstallBusyError):
            raise
        except StashSkillsError as error:
            return "staged", notes.staged(run, str(error), self._in_place(run))
        return "installed", notes.installed(run, written)

    def _kept(self, run: Run, listed: Sequence[Candidate], targets: Sequence[Target]) -> str | None:
        """Which skill of ours stays, in words, as it scored better or was chosen of this run by
        somebody; None if none does.
        """
        new = Version(run, listed, run.best_candidate or 0)
        for target in targets:
            place = look(target.skills_dir, run.skill_name or "")
            latest = record_of(self._manifest, place)
            if latest is None or not stands(place, latest):
                continue
            if latest.run_id == run.id:
                if latest.candidate == run.best_candidate:
                    continue
                # Somebody chose it while this waited.
                return f"{place.file} was kept, since candidate {latest.candidate} of it was chosen"
            if run.adopted is not None and run.adopted.sha256 == sha256(place.content or b""):
                # It was the seed, so the gain is over it.
                continue
            present = self._version(latest)
            worse = None if present is None else worse_than(present, new)
            if worse is not None:
                return f"{place.file} was kept, since {worse}"
        return None

    def _version(self, installed: Installation) -> Version | None:
        try:
            run = self._ended(installed.run_id)
            return Version(run, self._candidates_of(run.id), installed.candidate)
        except NotFoundError:
            return None

    def _in_place(self, run: Run) -> list[str]:
        """The files that hold a skill of this run now."""
        last = self._manifest.latest_of_each()
        return [row.path for row in last if row.run_id == run.id and file_state(row) == "current"]
