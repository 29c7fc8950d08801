"""Skills on this machine: installing them, what became of them, going back, taking them away."""

import os
from collections.abc import Sequence

from stash_mcp.backends.ids import is_stash
from stash_mcp.backends.installations import (
    InstalledDetail,
    InstalledSkill,
    InstallOrder,
    InstallOutcome,
    Origin,
    RollbackOrder,
    ScanFinding,
    SkillsFolder,
    SkillState,
    Targets,
    UninstallOrder,
    UninstallOutcome,
)
from stash_mcp.backends.local.runs import Runs
from stash_mcp.errors import NotFoundError, NotReadyError
from stash_mcp.models import Candidate, Installation, JobStatus, Run
from stash_mcp.skills import history
from stash_mcp.skills.install import Installed, install, install_all
from stash_mcp.skills.journal import complete_if_free
from stash_mcp.skills.sight import sight_in
from stash_mcp.skills.targets import (
    AGENTS,
    Agent,
    Scope,
    is_used,
    readers,
    resolve,
    resolve_all,
    target_of,
)
from stash_mcp.skills.versions import kept_text, sha256
from stash_mcp.skills.written_paths import absolute


class Skills(Runs):
    def install_skill(self, order: InstallOrder) -> tuple[InstallOutcome, ...]:
        run = self.get_run(order.run_id)
        return self.install_of(run, self.list_candidates(run.id), order)

    def install_of(
        self, run: Run, candidates: Sequence[Candidate], order: InstallOrder
    ) -> tuple[InstallOutcome, ...]:
        """Install one of these candidates of a run, of whatever backend."""
        candidate = _chosen(run, candidates, order.candidate)
        done = install_all(
            candidate.skill,
            targets=resolve_all(self._settings, order.scope, order.agents),
            run_id=order.run_id,
            candidate=candidate.number,
            manifest=self._manifest,
            backups_dir=self._settings.backups_dir,
            force=order.force,
            now=self._clock(),
            accept_findings=order.accept_findings,
            dry_run=order.dry_run,
            adopted=run.adopted,
        )
        return tuple(self._outcome_of(row, _reservation(run), order.dry_run) for row in done)

    def rollback_skill(self, order: RollbackOrder) -> InstallOutcome:
        latest = self._find(order.skill, dry_run=order.dry_run)
        version = history.former(self._manifest, latest, order.version)
        history.same_place(latest)
        done = install(
            kept_text(self._settings.backups_dir, version.sha256),
            target=target_of(self._settings, latest),
            run_id=version.run_id,
            candidate=version.candidate,
            manifest=self._manifest,
            backups_dir=self._settings.backups_dir,
            force=order.force,
            now=self._clock(),
            accept_findings=order.accept_findings,
            dry_run=order.dry_run,
            kind="rollback",
        )
        return self._outcome_of(done, "", order.dry_run)

    def uninstall_skill(self, order: UninstallOrder) -> UninstallOutcome:
        done = history.uninstall(
            self._find(order.skill, dry_run=order.dry_run),
            manifest=self._manifest,
            backups_dir=self._settings.backups_dir,
            force=order.force,
            now=self._clock(),
            dry_run=order.dry_run,
        )
        return UninstallOutcome(
            installation=done.installation,
            backup=None if done.backup is None else os.fspath(done.backup),
            diff=done.diff,
            dry_run=order.dry_run,
            agents=readers(self._settings, done.installation),
        )

    def list_installed_skills(self) -> list[InstalledSkill]:
        complete_if_free(self._manifest, self._settings.backups_dir)
        runs = self.known_runs()
        return [self._installed(row, runs) for row in self._manifest.latest_of_each()]

    def get_installed_skill(self, skill: str, version: int | None = None) -> InstalledDetail:
        latest = self._find(skill)
        number = latest.version if version is None else version
        chosen = history.former(self._manifest, latest, number)
        return InstalledDetail(
            skill=self._installed(latest, self.known_runs()),
            versions=tuple(self._manifest.versions(latest.path)),
            version=chosen.version,
            diff=history.changes(latest, chosen, self._settings.backups_dir),
        )

    def targets(self) -> Targets:
        return Targets(
            project_dir=os.fspath(self._settings.project_dir),
            project_from=self._settings.project_from,
            folders=tuple(
                self._folder(row, scope) for row in AGENTS.values() for scope in ("project", "user")
            ),
        )

    def _find(self, skill: str, *, dry_run: bool = False) -> Installation:
        """By name or path. What a killed installation left is completed, which writes."""
        if not dry_run:
            complete_if_free(self._manifest, self._settings.backups_dir)
        return history.find(self._manifest, skill, self._spellings(skill))

    def _spellings(self, skill: str) -> tuple[str, ...]:
        """Of a path: as it is written, and where the links in it lead."""
        real = self._written(skill)
        return (real,) if real == skill else (real, os.fspath(absolute(self._settings, skill)))

    def _folder(self, row: Agent, scope: Scope) -> SkillsFolder:
        path = resolve(self._settings, scope, row.id).skills_dir
        return SkillsFolder(
            agent=row.id,
            title=row.title,
            scope=scope,
            path=os.fspath(path),
            exists=path.is_dir(),
            agent_found=is_used(row, self._settings),
        )

    def _installed(self, latest: Installation, runs: Sequence[Run]) -> InstalledSkill:
        state: SkillState = history.file_state(latest)
        newer = self._newer(latest, runs)
        if state == "current" and newer is not None:
            state = "newer available"
        origins = [self._origin(latest, run) for run in runs if run.id == latest.run_id]
        return InstalledSkill(
            installation=latest,
            state=state,
            origin=origins[0] if origins else Origin(),
            newer_run=None if newer is None else newer.id,
            agents=readers(self._settings, latest),
            line_ends_changed=history.line_ends_changed(latest),
        )

    def _newer(self, latest: Installation, runs: Sequence[Run]) -> Run | None:
        """The newest of `runs`, which come newest first, that ended after the installation, if it
        ended with another text for this skill.
        """
        for run in runs:
            after = run.finished_at is not None and run.finished_at > latest.installed_at
            if run.status is JobStatus.SUCCEEDED and run.skill_name == latest.name and after:
                skills = {row.number: row.skill for row in self._candidates_of(run.id)}
                best = skills.get(run.best_candidate or 0, "")
                return None if sha256(best.encode()) == latest.sha256 else run
        return None

    def _origin(self, latest: Installation, run: Run) -> Origin:
        scores = {row.number: row.score for row in self._candidates_of(run.id)}
        measured = run.heldout is not None and latest.candidate == run.best_candidate
        return Origin(
            reward_model_id=run.request.reward_model_id,
            score=scores.get(latest.candidate),
            seed_score=run.seed_score,
            heldout_gain=run.heldout.gain if measured and run.heldout is not None else None,
        )

    def _outcome_of(self, done: Installed, reservation: str, dry_run: bool) -> InstallOutcome:
        seen = done.visibility if self._session is None else self._sight(done.installation)
        return _outcome(done, f"{seen}{_adopted_in_words(done)}{reservation}", dry_run=dry_run)

    def _sight(self, row: Installation) -> str:
        """Whether the agent that is told this sees what was written."""
        target = target_of(self._settings, row)
        return sight_in(self._session, target, row.name, row.installed_at)

    def known_runs(self) -> list[Run]:
        runs = [*self.list_runs(), *self.remote_runs.all()]
        return sorted(runs, key=lambda run: run.created_at, reverse=True)

    def _candidates_of(self, run_id: str) -> list[Candidate]:
        """Also of a run of Stash that is known here."""
        if is_stash(run_id):
            return self.remote_runs.candidates(run_id)
        return self.list_candidates(run_id)


def _chosen(run: Run, candidates: Sequence[Candidate], number: int | None) -> Candidate:
    # Of a failed run nothing says which one is best: it has to be named.
    usable = run.partial or (run.status is JobStatus.FAILED and number is not None)
    if run.status is not JobStatus.SUCCEEDED and not usable:
        raise NotReadyError(
            f"The run '{run.id}' is {run.status}; only a finished run's skill is installed.",
            "Ask get_run for it, and install when it has succeeded."
            if not run.status.is_final
            else _after_failure(run, candidates),
        )
    number = run.best_candidate if number is None else number
    for candidate in candidates:
        if candidate.number == number:
            return candidate
    raise NotFoundError(
        f"The run '{run.id}' has no candidate {number}.",
        "List its candidates to see their numbers (list_candidates, or "
        "`stash-skills candidates RUN`).",
    )


def _after_failure(run: Run, candidates: Sequence[Candidate]) -> str:
    again = "Start another run" if run.backend == "stash" else "Resume it or start another run"
    named = "; or name a candidate that it had scored" if candidates else ""
    return f"It ended with: {run.reason or f'{run.status}.'} {again}{named}."


def _reservation(run: Run) -> str:
    """What the person should know of a skill that was not found to be better."""
    if run.status is JobStatus.FAILED:
        return f" The run failed before its end, so this is unproven. It ended with: {run.reason}"
    if run.verdict is None or run.verdict.startswith("Improved:"):
        return ""
    return (
        f" The run's verdict was '{run.verdict.partition(':')[0]}'; get_run "
        f"(stash-skills status {run.id}) has the numbers."
    )


def _adopted_in_words(done: Installed) -> str:
    if done.adopted is None:
        return ""
    return f" The edited text that was its seed stays as version {done.adopted.version}."


def _outcome(done: Installed, told: str, *, dry_run: bool) -> InstallOutcome:
    return InstallOutcome(
        installation=done.installation,
        action=done.action,
        backup=None if done.backup is None else os.fspath(done.backup),
        visibility=told,
        diff=done.diff,
        findings=tuple(
            ScanFinding(rule=row.rule, severity=row.severity, line=row.line, why=row.why)
            for row in done.findings
        ),
        dry_run=dry_run,
    )
