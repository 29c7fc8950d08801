"""Skills that are installed: how each stands now, going back to a former version, taking one away.

A skill that was taken away stays in the history, and each of its versions can come back.
"""

import contextlib
import stat
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Literal

from stash_mcp.errors import InputError, InstallError, NotFoundError
from stash_mcp.models import Installation
from stash_mcp.skills.journal import noted, only_installer
from stash_mcp.skills.manifest import Manifest
from stash_mcp.skills.ownership import refuse_to_remove, stands
from stash_mcp.skills.place import Place, look, unified_diff
from stash_mcp.skills.records import copied_from
from stash_mcp.skills.versions import is_text_of, kept_text, sha256
from stash_mcp.skills.writing import back_up, clean_up, take_away

FileState = Literal["current", "edited", "missing", "uninstalled", "unreadable"]


@dataclass(frozen=True)
class TakenAway:
    """backup: a copy of what was removed; None where the file was gone already."""

    installation: Installation
    backup: Path | None
    diff: str


def file_state(latest: Installation) -> FileState:
    """How the file stands that `latest`, the last record of its path, is about."""
    if latest.kind == "uninstall":
        return "uninstalled"
    path = Path(latest.path)
    try:
        linked = stat.S_ISLNK(path.parent.lstat().st_mode)
        if linked or not stat.S_ISREG(path.lstat().st_mode):
            return "edited"
        content = path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return "missing"
    except OSError:
        return "unreadable"
    return "current" if is_text_of(content, latest.sha256) else "edited"


def line_ends_changed(latest: Installation) -> bool:
    """Of a current file: whether it differs from what we wrote in its line ends."""
    with contextlib.suppress(OSError):
        content = Path(latest.path).read_bytes()
        return sha256(content) != latest.sha256 and is_text_of(content, latest.sha256)
    return False


def find(manifest: Manifest, skill: str, places: Collection[str] = ()) -> Installation:
    """The last record of the one installation that `skill`, a name or a path, means.

    places: other spellings of the path. A name that is installed now is preferred to one that was
    taken away. Raises NotFoundError, and InputError where several have the name.
    """
    meant = {skill, *places}
    last = manifest.latest_of_each()
    rows = [row for row in last if not meant.isdisjoint((row.name, row.path, _above(row)))]
    rows = [row for row in rows if row.kind != "uninstall"] or rows
    if not rows:
        raise NotFoundError(
            f"No skill '{skill}' was installed by stash-skills.",
            "List those that were: list_installed_skills, or `stash-skills installed`.",
        )
    if len(rows) > 1:
        raise InputError(
            f"'{skill}' is installed in {len(rows)} places: {', '.join(row.path for row in rows)}.",
            "Name one by its path.",
        )
    return rows[0]


def former(manifest: Manifest, latest: Installation, version: int | None) -> Installation:
    """The version with this number; None means the newest whose text is not the present one's."""
    versions = manifest.versions(latest.path)
    if version is None:
        gone = latest.kind == "uninstall"
        rows = [row for row in versions if gone or row.sha256 != latest.sha256]
    else:
        rows = [row for row in versions if row.version == version]
    if not rows:
        raise NotFoundError(
            f"'{latest.name}' has no former version."
            if version is None
            else f"'{latest.name}' has no version {version}; it has 1 to {len(versions)}.",
            "See its versions: list_installed_skills(skill=...), `stash-skills installed SKILL`.",
        )
    return rows[-1]


def changes(latest: Installation, version: Installation, backups_dir: Path) -> str:
    """A unified diff from what stands in the file to the text of `version`."""
    path = Path(latest.path)
    place = look(path.parent.parent, latest.name)
    if place.content is not None and is_text_of(place.content, version.sha256):
        return ""
    return unified_diff(place, kept_text(backups_dir, version.sha256))


def uninstall(
    latest: Installation,
    *,
    manifest: Manifest,
    backups_dir: Path,
    force: bool,
    now: datetime,
    dry_run: bool = False,
) -> TakenAway:
    """Remove the SKILL.md that `latest` is about, and its folder if nothing else is in it.

    A copy goes into `backups_dir`. force: also a file that was edited since. Raises, with nothing
    changed: NotFoundError where it was taken away before; InstallConflictError for a file that was
    edited; InstallError for a link or another kind of file.
    """
    with only_installer(manifest, backups_dir, dry_run=dry_run):
        latest = manifest.latest(latest.path) or latest
        _refuse_taken_away(latest)
        place = same_place(latest)
        if not force:
            refuse_to_remove(place, latest, copied_from(manifest, place))
        diff = unified_diff(place, "", "to be removed")
        if not dry_run and latest.path != str(place.file):
            manifest.move(latest.path, str(place.file))
        latest = latest.model_copy(update={"path": str(place.file)})
        record = latest.model_copy(update={"kind": "uninstall", "installed_at": now})
        backup = back_up(place, backups_dir, now, dry_run=dry_run)
        if not dry_run:
            clean_up(place, backups_dir)
            with noted(backups_dir, record), manifest.recording(record):
                take_away(place)
        return TakenAway(record, backup, diff)


def _refuse_taken_away(latest: Installation) -> None:
    if latest.kind == "uninstall":
        raise NotFoundError(
            f"'{latest.name}' was taken away before, on {latest.installed_at:%Y-%m-%d %H:%M}.",
            "There is nothing to do; rolling back brings a version of it back.",
        )


def same_place(latest: Installation) -> Place:
    """What stands at the recorded path; raises InstallError where that leads elsewhere by now,
    unless what we wrote is there.
    """
    path = Path(latest.path)
    place = look(path.parent.parent, latest.name)
    if place.file != path and (place.content is None or not stands(place, latest)):
        raise InstallError(
            f"{path.parent.parent} leads to {place.skills_dir} now; nothing was changed there.",
            "Take the link away, or remove the skill by hand.",
        )
    return place


def _above(row: Installation) -> str:
    return str(Path(row.path).parent)
