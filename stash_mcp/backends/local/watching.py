"""Finished skills into the agents' skills folders, by themselves.

`reconcile` looks which runs are finished and asked for it, and settles each once. The server, the
worker at its end and `stash-skills watch` all call it; a lock lets one at a time, and one that
died in the middle is done again, which changes nothing that was done.
"""

from pathlib import Path

from stash_mcp.backends.local.skills import Skills
from stash_mcp.errors import StashSkillsError
from stash_mcp.models import Candidate, InstallState, InstallTarget, Notice, Run
from stash_mcp.runs.installing import InstallQueue
from stash_mcp.skills.install import install
from stash_mcp.skills.targets import Target
from stash_mcp.storage.files import try_lock


class Watching(Skills):
    def reconcile(self) -> list[Notice]:
        """Settle what is finished; returns what was settled now."""
        queue = InstallQueue(self._database)
        if not queue.waiting():
            return []
        with try_lock(self._settings.home / "reconcile.lock") as ours:
            if not ours:
                return []
            return [
                notice
                for run_id in queue.waiting()
                if (notice := self._settle(queue, self.get_run(run_id))) is not None
            ]

    def take_notices(self) -> list[Notice]:
        """What was installed or staged since somebody was told; each is given out once."""
        return InstallQueue(self._database).take_notices()

    def _settle(self, queue: InstallQueue, run: Run) -> Notice | None:
        state, note = self._outcome(run)
        if not queue.settle(run.id, state, note):
            return None
        self._jobs.add_event(run.id, note)
        return Notice(run_id=run.id, state=state, note=note)

    def _outcome(self, run: Run) -> tuple[InstallState, str]:
        held_back = _held_back(run)
        if held_back is not None:
            return "staged", _staged(run, held_back)
        best = next(row for row in self.list_candidates(run.id) if row.number == run.best_candidate)
        written: list[str] = []
        for target in run.install.targets:
            try:
                written.append(self._install_into(target, run, best))
            except StashSkillsError as error:
                where = f" It is in {', '.join(written)} already." if written else ""
                return "staged", _staged(run, f"{error}{where}")
        return "installed", f"The skill of run {run.id} is installed: {', '.join(written)}."

    def _install_into(self, target: InstallTarget, run: Run, candidate: Candidate) -> str:
        installed = install(
            candidate.skill,
            target=Target(target.agent, target.scope, Path(target.skills_dir)),
            run_id=run.id,
            candidate=candidate.number,
            manifest=self._manifest,
            backups_dir=self._settings.backups_dir,
            force=False,
            now=self._clock(),
            by_itself=True,
        )
        return installed.installation.path


def _held_back(run: Run) -> str | None:
    """Why a skill is not installed by itself; None where nothing stands against it."""
    if run.install.mode == "ask":
        return "You are asked first."
    if not run.best_candidate or run.seed_score is None or run.best_score is None:
        return "No proposal beat the seed."
    if run.heldout is not None:
        gain, measured = run.heldout.gain, "held-out conversations"
    else:
        gain, measured = run.best_score - run.seed_score, "the conversations optimised on"
    if gain <= run.install.min_gain:
        return f"Its gain of {gain:+.3f} on {measured} is not above {run.install.min_gain:g}."
    return None


def _staged(run: Run, reason: str) -> str:
    return (
        f"The skill of run {run.id} is ready and not installed: {reason} Read it with "
        f"list_candidates and install it with install_skill (stash-skills install {run.id})."
    )
