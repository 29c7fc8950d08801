"""A skill into agents' skills folders: whole or not at all, and never over somebody's work.

Only what is ours is replaced (ownership.py); any other is by `force` alone, after a copy. Each
installation is a version, whose text is kept.

Not covered: which skill goes where by itself when a run ends (backends/local/watching.py); former
versions and taking a skill away (history.py).
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Literal

from stash_mcp.errors import InputError, InstallError, StashSkillsError
from stash_mcp.models import AdoptedSkill, Installation
from stash_mcp.skills.document import read_document
from stash_mcp.skills.journal import noted, only_installer
from stash_mcp.skills.manifest import Manifest
from stash_mcp.skills.ownership import (
    adoption,
    refuse_missing_project,
    refuse_not_ours,
    refuse_removed,
)
from stash_mcp.skills.place import Place, look, unified_diff
from stash_mcp.skills.records import copied_from, record_of
from stash_mcp.skills.scan import RULES, Finding, find_active
from stash_mcp.skills.sight import sight
from stash_mcp.skills.targets import Target, project_of
from stash_mcp.skills.versions import kept, sha256
from stash_mcp.skills.writing import back_up, clean_up, write

Action = Literal["created", "replaced", "unchanged"]

_MAX_LISTED = 10


@dataclass(frozen=True)
class Installed:
    """What was done, or with `dry_run` what would be.

    backup: the copy of what was replaced, if one was made. visibility: whether a running agent
    sees the skill, in a sentence or two. diff: unified, from what stood there. findings: what is
    told of the text, with those that were accepted. adopted: the version that a person's edit
    became, which was the seed of this skill and is replaced by it.
    """

    installation: Installation
    action: Action
    backup: Path | None
    visibility: str
    diff: str = ""
    findings: tuple[Finding, ...] = ()
    adopted: Installation | None = None


@dataclass(frozen=True)
class _Step:
    """What is to be done at one target; found out before anything is written."""

    done: Installed
    place: Place
    moved_from: str | None


def install(
    skill_text: str,
    *,
    target: Target,
    run_id: str,
    candidate: int,
    manifest: Manifest,
    backups_dir: Path,
    force: bool,
    now: datetime,
    accept_findings: Collection[str] = (),
    dry_run: bool = False,
    kind: Literal["install", "rollback"] = "install",
    by_itself: bool = False,
    adopted: AdoptedSkill | None = None,
) -> Installed:
    """`install_all` for one target."""
    [done] = install_all(
        skill_text,
        targets=[target],
        run_id=run_id,
        candidate=candidate,
        manifest=manifest,
        backups_dir=backups_dir,
        force=force,
        now=now,
        accept_findings=accept_findings,
        dry_run=dry_run,
        kind=kind,
        by_itself=by_itself,
        adopted=adopted,
    )
    return done


def install_all(
    skill_text: str,
    *,
    targets: Sequence[Target],
    run_id: str,
    candidate: int,
    manifest: Manifest,
    backups_dir: Path,
    force: bool,
    now: datetime,
    accept_findings: Collection[str] = (),
    dry_run: bool = False,
    kind: Literal["install", "rollback"] = "install",
    by_itself: bool = False,
    adopted: AdoptedSkill | None = None,
) -> tuple[Installed, ...]:
    """Make `<skills_dir>/<name>/SKILL.md` of every target hold exactly `skill_text`; the name is
    the text's own. One outcome for each target.

    The same text twice changes nothing on disk. Other files in the skill's folder are not touched.
    force: replace a file that is not ours, after a copy into `backups_dir`; nothing else is
    forced. now: with a time zone. accept_findings: rules of the scan whose high findings do not
    stop the installation. dry_run: find out all of it, and write nothing.
    by_itself: nobody asked for it just now, so a skill that a person removed stays removed.
    adopted: the text that the skill was evolved from; where it stands in the file, exactly, it is
    replaced though a person wrote it, and stays as a version.

    Raises, with nothing changed at any target: SkillDocumentError for a text that is no SKILL.md;
    InstallError for a link or another kind of file in the way, a name that differs from a
    neighbour's only in case, a project that is not there, or a body with high findings;
    InstallConflictError, with a diff, for a file that is not ours. StorageError where the disk
    refuses, and InstallBusyError where somebody else is at it; targets before that one are done,
    and the error names them.
    """
    document = read_document(skill_text)
    _refuse_other_keys(document.other_keys)
    with only_installer(manifest, backups_dir, dry_run=dry_run):
        for target in targets:
            refuse_missing_project(project_of(target))
        places = [look(target.skills_dir, document.skill.name) for target in targets]
        findings = _accepted(skill_text, places, accept_findings)
        steps = []
        for target, place in zip(targets, places, strict=True):
            path, latest = str(place.file), record_of(manifest, place)
            moved_from = latest.path if latest is not None and latest.path != path else None
            wanted = Installation(
                path=path,
                name=document.skill.name,
                agent=target.agent,
                scope=target.scope,
                run_id=run_id,
                candidate=candidate,
                sha256=sha256(skill_text.encode()),
                installed_at=now,
                version=manifest.next_version(moved_from or path),
                kind=kind,
            )
            if by_itself:
                refuse_removed(place, latest)
            edit = adoption(place, skill_text, adopted, wanted, latest)
            if edit is not None:
                wanted = wanted.model_copy(update={"version": edit.version + 1})
            elif place.content != skill_text.encode() and not force:
                copied = copied_from(manifest, place)
                refuse_not_ours(place, skill_text, latest, adopted, copied)
            backup = back_up(place, backups_dir, now, dry_run=True) if force else None
            done = _planned(wanted, place, target, backup, skill_text, findings)
            steps.append(_Step(replace(done, adopted=edit), place, moved_from))
        if dry_run:
            return tuple(step.done for step in steps)
        return _do_all(steps, skill_text, manifest, backups_dir, force=force)


def _planned(
    wanted: Installation,
    place: Place,
    target: Target,
    backup: Path | None,
    skill_text: str,
    findings: tuple[Finding, ...],
) -> Installed:
    # Whether a folder that is there was there when a session began is not known here.
    folder_existed = None if place.skills_dir_exists else False
    seen = sight(target, place.folder.name, folder_existed=folder_existed)
    if place.content == skill_text.encode():
        return Installed(wanted, "unchanged", None, seen, "", findings)
    action: Action = "created" if place.content is None else "replaced"
    return Installed(wanted, action, backup, seen, unified_diff(place, skill_text), findings)


def _do_all(
    steps: Sequence[_Step],
    skill_text: str,
    manifest: Manifest,
    backups_dir: Path,
    *,
    force: bool,
) -> tuple[Installed, ...]:
    done: list[Installed] = []
    for step in steps:
        try:
            done.append(_do(step, skill_text, manifest, backups_dir, force=force))
        except StashSkillsError as error:
            if done:
                paths = ", ".join(dict.fromkeys(row.installation.path for row in done))
                error.fix = f"{error.fix} It is in {paths} already."
            raise
    return tuple(done)


def _do(
    step: _Step, skill_text: str, manifest: Manifest, backups_dir: Path, *, force: bool
) -> Installed:
    wanted = step.done.installation
    if step.moved_from is not None:
        manifest.move(step.moved_from, wanted.path)
    # A target before may have been the same folder, which several agents share.
    place = look(step.place.skills_dir, wanted.name)
    clean_up(place, backups_dir)
    if place.content == skill_text.encode():
        with kept(backups_dir, place.content):
            known = _known(wanted, manifest)
        return replace(step.done, installation=known, action="unchanged", backup=None, diff="")
    if step.done.adopted is not None and place.content == step.place.content:
        # In the history before it is replaced, so that nothing can lose it.
        with kept(backups_dir, place.content or b""):
            manifest.record(step.done.adopted)
    backup = back_up(place, backups_dir, wanted.installed_at, dry_run=False) if force else None
    with (
        kept(backups_dir, skill_text.encode()),
        noted(backups_dir, wanted),
        manifest.recording(wanted),
    ):
        write(step.place, skill_text, backups_dir)
    return replace(step.done, backup=backup)


# --- what is refused ---


def _refuse_other_keys(other_keys: tuple[str, ...]) -> None:
    # `allowed-tools` and `hooks` widen what an agent may run without asking.
    if other_keys:
        raise InstallError(
            f"The skill's frontmatter has more than name and description: {', '.join(other_keys)}.",
            "Take these keys out; only name and description are installed.",
        )


def _accepted(
    skill_text: str, places: Sequence[Place], accept_findings: Collection[str]
) -> tuple[Finding, ...]:
    """What the scan finds in the text; refuses what is high and was not accepted."""
    _refuse_unknown_rules(accept_findings)
    found = find_active(skill_text)
    if all(place.content == skill_text.encode() for place in places):
        return found
    refused = [row for row in found if row.severity == "high" and row.rule not in accept_findings]
    if refused:
        listed = " ".join(f"{row.rule} in line {row.line}: {row.why}" for row in _first_of(refused))
        ids = ", ".join(dict.fromkeys(row.rule for row in refused))
        raise InstallError(
            f"The skill holds what can harm whoever loads it: {listed}",
            "Nothing was written. Choose another candidate or start another run; or, if the person "
            f"has read these lines and wants them, accept these findings: {ids}.",
        )
    return found


def _first_of(findings: Sequence[Finding]) -> list[Finding]:
    """The first finding of each rule, then the others, at most ten."""
    first = {row.rule: row for row in reversed(findings)}
    ordered = sorted(findings, key=lambda row: row is not first[row.rule])
    return ordered[:_MAX_LISTED]


def _refuse_unknown_rules(ids: Collection[str]) -> None:
    known = {rule.id for rule in RULES}
    if unknown := sorted(set(ids) - known):
        raise InputError(
            f"No finding is called {', '.join(unknown)}.",
            f"The findings are: {', '.join(sorted(known))}.",
        )


# --- what is told ---


def _known(wanted: Installation, manifest: Manifest) -> Installation:
    """The record of a file that holds the wanted text already.

    Taking it as ours loses nothing: its text is the candidate's. A run that was killed between
    writing and recording is completed so.
    """
    latest = manifest.latest(wanted.path)
    if latest is not None and _origin(latest) == _origin(wanted) and latest.kind != "uninstall":
        return latest
    manifest.record(wanted)
    return wanted


def _origin(installation: Installation) -> tuple[str, str, int]:
    return installation.sha256, installation.run_id, installation.candidate
