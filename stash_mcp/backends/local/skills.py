"""Installing a run's skill on this machine."""

import os

from stash_mcp.backends.base import InstallOrder, InstallOutcome
from stash_mcp.backends.local.runs import Runs
from stash_mcp.errors import NotFoundError, NotReadyError
from stash_mcp.models import Candidate, JobStatus
from stash_mcp.skills.install import install
from stash_mcp.skills.targets import resolve


class Skills(Runs):
    def install_skill(self, order: InstallOrder) -> InstallOutcome:
        candidate = self._chosen(order)
        installed = install(
            candidate.skill,
            target=resolve(self._settings, order.scope),
            run_id=order.run_id,
            candidate=candidate.number,
            manifest=self._manifest,
            backups_dir=self._settings.backups_dir,
            force=order.force,
            now=self._clock(),
        )
        return InstallOutcome(
            installation=installed.installation,
            action=installed.action,
            backup=None if installed.backup is None else os.fspath(installed.backup),
            visibility=installed.visibility,
        )

    def _chosen(self, order: InstallOrder) -> Candidate:
        run = self.get_run(order.run_id)
        if run.status is not JobStatus.SUCCEEDED and not run.partial:
            raise NotReadyError(
                f"The run '{run.id}' is {run.status}; only a finished run's skill is installed.",
                "Ask get_run for it, and install when it has succeeded."
                if not run.status.is_final
                else f"It ended with: {run.reason or f'{run.status}.'} Resume it or start another "
                "run.",
            )
        number = run.best_candidate if order.candidate is None else order.candidate
        for candidate in self.list_candidates(run.id):
            if candidate.number == number:
                return candidate
        raise NotFoundError(
            f"The run '{run.id}' has no candidate {number}.",
            "List its candidates to see their numbers (list_candidates, or "
            "`stash-skills candidates RUN`).",
        )
