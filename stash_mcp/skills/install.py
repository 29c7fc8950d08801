"""A skill into an agent's skills folder: whole or not at all, and never over somebody's work.

What is ours is a SKILL.md whose SHA-256 is the latest that the manifest has for its path; any other
is only replaced by `force`, after a copy. Everything is staged beside the skills folder, never in
it: an agent lists whatever folder it finds there as a skill.

Not covered: which skill goes where by itself when a run ends, and taking one away again.
"""

import contextlib
import hashlib
import os
import stat
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from stash_mcp.errors import InstallConflictError, InstallError
from stash_mcp.models import Installation
from stash_mcp.skills.document import read_document
from stash_mcp.skills.manifest import Manifest
from stash_mcp.skills.place import SKILL_FILE, Place, look, unified_diff
from stash_mcp.skills.scan import find_active
from stash_mcp.skills.targets import Target, agent
from stash_mcp.storage.files import os_errors, private_dir, replace, try_lock, write_atomic

Action = Literal["created", "replaced", "unchanged"]

LOCK_SECONDS = 30.0
_STAGING_PREFIX = ".stash-skills-"


@dataclass(frozen=True)
class Installed:
    """backup: the copy of what was replaced, if one was made. visibility: whether a running agent
    sees the skill, in a sentence or two."""

    installation: Installation
    action: Action
    backup: Path | None
    visibility: str


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
) -> Installed:
    """Make `<skills_dir>/<name>/SKILL.md` hold exactly `skill_text`; the name is the text's own.

    The same text twice changes nothing on disk. Other files in the skill's folder are not touched.
    force: replace a file that is not ours, after a copy into `backups_dir`; nothing else is
    forced. now: with a time zone.

    Raises, with nothing changed: SkillDocumentError for a text that is no SKILL.md; InstallError
    for a link or another kind of file in the way, a name that differs from a neighbour's only in
    case, or a body with something active in it; InstallConflictError, with a diff, for a file that
    is not ours; StorageError where the disk refuses.
    """
    document = read_document(skill_text)
    _refuse_other_keys(document.other_keys)
    with _only_installer(backups_dir.parent / "install.lock"):
        place = look(target.skills_dir, document.skill.name)
        visibility = _visibility(target, place)
        wanted = Installation(
            path=str(place.file),
            name=document.skill.name,
            agent=target.agent,
            scope=target.scope,
            run_id=run_id,
            candidate=candidate,
            sha256=_sha256(skill_text.encode()),
            installed_at=now,
        )
        if place.content == skill_text.encode():
            return Installed(_known(wanted, manifest), "unchanged", None, visibility)
        _refuse_active(skill_text)
        if not force:
            _refuse_not_ours(place, skill_text, manifest.latest(wanted.path))
        backup = _back_up(place, backups_dir, now) if force else None
        with manifest.recording(wanted):
            _write(place, skill_text)
        action: Action = "created" if place.content is None else "replaced"
        return Installed(wanted, action, backup, visibility)


@contextlib.contextmanager
def _only_installer(lock: Path) -> Iterator[None]:
    with try_lock(lock, timeout=LOCK_SECONDS) as held:
        if not held:
            raise InstallError(
                f"Another installation has been going on for {LOCK_SECONDS:.0f} s.",
                "Wait for it to finish and do it again.",
            )
        yield


# --- what is refused ---


def _refuse_other_keys(other_keys: tuple[str, ...]) -> None:
    # `allowed-tools` and `hooks` widen what an agent may run without asking.
    if other_keys:
        raise InstallError(
            f"The skill's frontmatter has more than name and description: {', '.join(other_keys)}.",
            "Take these keys out; only name and description are installed.",
        )


def _refuse_active(skill_text: str) -> None:
    active = [finding for finding in find_active(skill_text) if finding.severity == "high"]
    if active:
        listed = " ".join(f"{finding.rule} in line {finding.line}." for finding in active[:10])
        raise InstallError(
            f"The skill holds what an agent would execute or read on load: {listed} "
            f"{active[0].why}",
            "Choose another candidate, or start another run; nothing was written.",
        )


def _refuse_not_ours(place: Place, skill_text: str, latest: Installation | None) -> None:
    if place.content is None:
        return
    if latest is not None and latest.sha256 == _sha256(place.content):
        return
    story = (
        "was not written by stash-skills"
        if latest is None
        else f"was edited since stash-skills wrote it on {latest.installed_at:%Y-%m-%d %H:%M}"
    )
    raise InstallConflictError(
        f"{place.file} {story}; it was left as it is.",
        "Keep it; or replace it with force, which makes a copy first; or install under another "
        "name, by starting a run with another skill_name.",
        unified_diff(place, skill_text),
    )


# --- what is written ---


def _write(place: Place, skill_text: str) -> None:
    with _parents(place.skills_dir), _staged(place, skill_text) as staged:
        _refuse_changed_meanwhile(place)
        with os_errors("install", place.file):
            if place.folder_exists:
                replace(staged / SKILL_FILE, place.file)
            else:
                replace(staged, place.folder)


@contextlib.contextmanager
def _parents(skills_dir: Path) -> Iterator[None]:
    """Make the skills folder and its parents; those made here go again if the block fails."""
    missing = [folder for folder in (skills_dir, *skills_dir.parents) if not folder.exists()]
    try:
        with os_errors("make the folder", skills_dir):
            skills_dir.mkdir(parents=True, exist_ok=True)
        yield
    except BaseException:
        for folder in missing:
            with contextlib.suppress(OSError):
                folder.rmdir()
        raise


@contextlib.contextmanager
def _staged(place: Place, skill_text: str) -> Iterator[Path]:
    """The skill's folder, ready to be moved in, on the same file system as the skills folder."""
    beside = place.skills_dir.parent
    with os_errors("stage the skill in", beside):
        holder = tempfile.TemporaryDirectory(
            prefix=_STAGING_PREFIX, dir=beside, ignore_cleanup_errors=True
        )
    with holder:
        folder = Path(holder.name, place.folder.name)
        with os_errors("stage the skill in", beside):
            folder.mkdir()
            mode = _file_mode(place.file if place.content is not None else folder)
        write_atomic(folder / SKILL_FILE, skill_text, mode=mode)
        yield folder


def _file_mode(model: Path) -> int:
    # A skill is shared with others: it gets the mode that the user's umask gives, or keeps its own.
    return stat.S_IMODE(model.stat().st_mode) & 0o666


def _refuse_changed_meanwhile(place: Place) -> None:
    present = look(place.skills_dir, place.folder.name)
    if (present.folder_exists, present.content) != (place.folder_exists, place.content):
        raise InstallError(
            f"{place.file} was changed while the skill was being installed; it was left as it is.",
            "Do it again.",
        )


def _back_up(place: Place, backups_dir: Path, now: datetime) -> Path | None:
    if place.content is None:
        return None
    if Path(os.path.realpath(backups_dir)).is_relative_to(place.skills_dir):
        raise InstallError(
            f"The folder for backups, {backups_dir}, is inside the skills folder, where an agent "
            "would list them as skills.",
            "Set STASH_MCP_HOME to a folder outside it.",
        )
    folder = private_dir(backups_dir)
    stamp = f"{place.folder.name}-{now.astimezone(UTC):%Y%m%dT%H%M%SZ}"
    names = (f"{stamp}{f'-{number}' if number else ''}.md" for number in range(1_000_000))
    backup = next(folder / name for name in names if not (folder / name).exists())
    write_atomic(backup, place.content)
    return backup


# --- what is told ---


def _known(wanted: Installation, manifest: Manifest) -> Installation:
    """The record of a file that holds the wanted text already.

    Taking it as ours loses nothing: its text is the candidate's. A run that was killed between
    writing and recording is completed so.
    """
    latest = manifest.latest(wanted.path)
    if latest is not None and _origin(latest) == _origin(wanted):
        return latest
    manifest.record(wanted)
    return wanted


def _origin(installation: Installation) -> tuple[str, str, int]:
    return installation.sha256, installation.run_id, installation.candidate


def _visibility(target: Target, place: Place) -> str:
    row = agent(target.agent)
    seen = row.seen_if_folder_existed if place.skills_dir_exists else row.seen_if_folder_is_new
    if target.overriding_dir is None:
        return seen
    other = target.overriding_dir / place.folder.name / SKILL_FILE
    if not other.exists():
        return seen
    return f"{seen} But {other}, a personal skill of the same name, hides it."


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
