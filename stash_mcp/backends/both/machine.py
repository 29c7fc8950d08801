"""What only this machine does: its skills folders, what it keeps, and the watch over both sides."""

from pathlib import Path

from stash_mcp.backends.base import CacheReport, DiskUse, PruneReport, RunOrder, StartedRun
from stash_mcp.backends.both.following import follow
from stash_mcp.backends.both.lists import StashLists
from stash_mcp.backends.both.sides import Sides
from stash_mcp.backends.ids import is_stash
from stash_mcp.backends.installations import (
    InstalledDetail,
    InstalledSkill,
    InstallOrder,
    InstallOutcome,
    RollbackOrder,
    Targets,
    UninstallOrder,
    UninstallOutcome,
)
from stash_mcp.backends.local import LocalBackend
from stash_mcp.backends.stash import StashSide
from stash_mcp.models import Listener, Notice, RemoteResult, RewardModel
from stash_mcp.settings import BackendName


class Backends(Sides):
    """All of `Backend`. stash: for what was asked of Stash. brief: for what is only looked at by
    the way, and so gives up early."""

    def __init__(
        self,
        local: LocalBackend,
        stash: StashSide,
        brief: StashSide,
        lists: StashLists,
        default: BackendName,
    ) -> None:
        super().__init__(local, stash, lists, default)
        self._brief = brief

    def close(self) -> None:
        """End the connections to Stash."""
        self._stash.door.close()
        self._brief.door.close()

    # --- skills ---

    def reconcile(self, *, at_once: bool = False) -> list[Notice]:
        """Also of Stash's runs, those that it is time to look at."""
        if self._local.remote_runs.has_due():
            follow(self._brief, self._brief.kept_runs, self._brief.door.has_key)
        return self._local.reconcile(at_once=at_once)

    def take_notices(self, listener: Listener = "agent") -> list[Notice]:
        return self._local.take_notices(listener)

    def install_skill(self, order: InstallOrder) -> tuple[InstallOutcome, ...]:
        if not is_stash(order.run_id):
            return self._local.install_skill(order)
        run = self._stash.get_run(order.run_id)
        candidates = self._stash.list_candidates(order.run_id)
        best = next((row for row in candidates if row.number == run.best_candidate), None)
        if order.candidate is None and best is not None and run.as_seen is None:
            self._brief.check_skill(run.id, best.skill)
        if run.status.is_final and not order.dry_run:
            # So that the list of installed skills tells its origin without a network.
            self._stash.kept_runs.remember(run, candidates)
        return self._local.install_of(run, candidates, order)

    def list_installed_skills(self) -> list[InstalledSkill]:
        return self._local.list_installed_skills()

    def get_installed_skill(self, skill: str, version: int | None = None) -> InstalledDetail:
        return self._local.get_installed_skill(skill, version)

    def rollback_skill(self, order: RollbackOrder) -> InstallOutcome:
        return self._local.rollback_skill(order)

    def uninstall_skill(self, order: UninstallOrder) -> UninstallOutcome:
        return self._local.uninstall_skill(order)

    def targets(self) -> Targets:
        return self._local.targets()

    # --- what is kept ---

    def import_reward_model(self, path: Path, name: str | None = None) -> RewardModel:
        return self._local.import_reward_model(path, name)

    def measure(self, measured: RemoteResult, order: RunOrder) -> StartedRun:
        return self._local.measure(measured, order)

    def cache(self) -> CacheReport:
        return self._local.cache()

    def clear_cache(self) -> CacheReport:
        return self._local.clear_cache()

    def disk_use(self) -> DiskUse:
        return self._local.disk_use()

    def prune(self, *, older_than_days: float, dry_run: bool) -> PruneReport:
        return self._local.prune(older_than_days=older_than_days, dry_run=dry_run)
