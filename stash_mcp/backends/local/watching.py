"""Finished skills into the agents' skills folders, by themselves.

`reconcile` looks which runs are finished and asked for it, and settles each once. The server, the
worker at its end and `stash-skills watch` all call it; a lock lets one at a time, and one that
died in the middle is done again, which changes nothing that was done.
"""

from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

from stash_mcp.backends.ids import is_stash
from stash_mcp.backends.local.skills import Skills
from stash_mcp.errors import StashSkillsError
from stash_mcp.models import Candidate, InstallState, InstallTarget, Listener, Notice, Run
from stash_mcp.runs.installing import InstallQueue
from stash_mcp.skills.install import Installed, install
from stash_mcp.skills.journal import complete_if_free
from stash_mcp.skills.targets import known_target
from stash_mcp.storage.files import try_lock

NEWS_AGE = timedelta(days=1)


class Watching(Skills):
    def reconcile(self) -> list[Notice]:
        """Settle what is finished; returns what was settled now."""
        complete_if_free(self._manifest, self._settings.backups_dir)
        return [
            *self._settle_all(InstallQueue(self._database)),
            *self._settle_all(InstallQueue(self._database, "remote_runs")),
        ]

    def _settle_all(self, queue: InstallQueue) -> list[Notice]:
        settled: list[Notice] = []
        # Again after the lock is dropped: whoever was refused it meanwhile left its run to us.
        while queue.waiting():
            with try_lock(self._settings.home / "reconcile.lock") as ours:
                if not ours:
                    break
                settled += [
                    notice
                    for run_id in queue.waiting()
                    if (notice := self._settle(queue, self._ended(run_id))) is not None
                ]
        return settled

    def take_notices(self, listener: Listener = "agent") -> list[Notice]:
        """What was installed or staged since this listener was told; each is given out once.

        At a command only what ended lately: a person who works with the agent was told there.
        """
        notices = [
            *InstallQueue(self._database).take_notices(listener),
            *InstallQueue(self._database, "remote_runs").take_notices(listener),
        ]
        if listener == "command":
            since = self._clock() - NEWS_AGE
            runs = {notice.run_id: self._ended(notice.run_id) for notice in notices}
            ended = {run_id: run.finished_at for run_id, run in runs.items()}
            notices = [row for row in notices if (ended[row.run_id] or since) >= since]
        return [self._with_sight(notice) for notice in notices]

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

    def _settle(self, queue: InstallQueue, run: Run) -> Notice | None:
        state, note = self._outcome(run)
        if not queue.settle(run.id, state, note, self._clock()):
            return None
        return Notice(run_id=run.id, state=state, note=note)

    def _outcome(self, run: Run) -> tuple[InstallState, str]:
        held_back = _held_back(run)
        if held_back is not None:
            return "staged", _staged(run, held_back)
        listed = self._candidates_of(run.id)
        best = next(row for row in listed if row.number == run.best_candidate)
        written: list[Installed] = []
        for target in run.install.targets:
            try:
                written.append(self._install_into(target, run, best))
            except StashSkillsError as error:
                where = f" It is in {_paths(written)} already." if written else ""
                return "staged", _staged(run, f"{error}{where}")
        return "installed", _installed(run, written)

    def _install_into(self, target: InstallTarget, run: Run, candidate: Candidate) -> Installed:
        where = (target.agent, target.scope, Path(target.skills_dir))
        return install(
            candidate.skill,
            target=known_target(self._settings, *where),
            run_id=run.id,
            candidate=candidate.number,
            manifest=self._manifest,
            backups_dir=self._settings.backups_dir,
            force=False,
            now=self._clock(),
            by_itself=True,
            adopted=run.adopted,
        )


def _held_back(run: Run) -> str | None:
    """Why a skill is not installed by itself; None where nothing stands against it."""
    if run.install.mode == "ask":
        return "You are asked first."
    if not run.best_candidate or run.seed_score is None or run.best_score is None:
        return "No proposal beat the seed."
    gain, measured = _gain(run, run.seed_score, run.best_score)
    if gain <= run.install.min_gain:
        return f"Its gain of {gain:+.3f} on {measured} is not above {run.install.min_gain:g}."
    return None


def _gain(run: Run, seed_score: float, best_score: float) -> tuple[float, str]:
    """Over the seed, and on what it was measured."""
    if run.heldout is not None:
        return run.heldout.gain, "held-out conversations"
    return best_score - seed_score, "the conversations optimised on"


def _installed(run: Run, written: Sequence[Installed]) -> str:
    said = [f"The skill of run {run.id} is installed: {_paths(written)}."]
    if run.seed_score is not None and run.best_score is not None:
        gain, measured = _gain(run, run.seed_score, run.best_score)
        said.append(f"Its gain over the seed is {gain:+.3f} on {measured}.")
    for adopted in dict.fromkeys(row.adopted for row in written if row.adopted is not None):
        said.append(
            f"The edited text that was its seed stays as version {adopted.version}; "
            f"rollback_skill (stash-skills rollback {adopted.name}) brings it back."
        )
    return " ".join(said)


def _paths(written: Sequence[Installed]) -> str:
    return ", ".join(dict.fromkeys(row.installation.path for row in written))


def _staged(run: Run, reason: str) -> str:
    return (
        f"The skill of run {run.id} is ready and not installed: {reason} Read it with "
        f"list_candidates and install it with install_skill (stash-skills install {run.id})."
    )
