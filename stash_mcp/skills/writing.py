"""Writing a skill into its folder, and taking it away: whole or not at all.

Everything is staged outside the skills folder, since an agent lists whatever folder it finds there
as a skill. Where nothing can be moved from there (the skills folder is a mount of its own, or the
folder above it is read-only) a file is staged in the skill's own folder, where no agent looks for
skills. What a killed installation left is removed by the next one.
"""

import contextlib
import errno
import hashlib
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from stash_mcp.errors import InstallBusyError, InstallError
from stash_mcp.skills.place import SKILL_FILE, Place, look
from stash_mcp.storage.files import (
    TEMPORARY_PREFIX,
    os_errors,
    private_dir,
    remove,
    replace,
    write_atomic,
)

LOCK_NAME = "install.lock"
_ELSEWHERE = {errno.EXDEV, errno.EACCES, errno.EPERM, errno.EROFS}


def write(place: Place, skill_text: str, backups_dir: Path) -> None:
    """Make the place's file hold `skill_text`; raises with the folders as they were."""
    prefix = _prefix(backups_dir)
    with _parents(place.skills_dir):
        try:
            _write_from_beside(place, skill_text, prefix)
        except OSError as error:
            if error.errno not in _ELSEWHERE:
                with os_errors("install", place.file):
                    raise
            _write_from_inside(place, skill_text, prefix)


def clean_up(place: Place, backups_dir: Path) -> None:
    """Remove what an installation left that was killed; the lock is held, so none is at work."""
    clean_up_around(place.file, backups_dir)


def clean_up_around(skill_file: Path, backups_dir: Path) -> None:
    """The same, for the installation of this SKILL.md."""
    prefix = _prefix(backups_dir)
    skill_folder = skill_file.parent
    for folder in (skill_folder.parent.parent, skill_folder):
        for left in _named(folder, prefix):
            shutil.rmtree(left, ignore_errors=True)
    for folder in (backups_dir, backups_dir / "versions"):
        for left in _named(folder, TEMPORARY_PREFIX):
            with contextlib.suppress(OSError):
                left.unlink()


def _named(folder: Path, prefix: str) -> list[Path]:
    with contextlib.suppress(OSError):
        return [path for path in folder.iterdir() if path.name.startswith(prefix)]
    return []


def take_away(place: Place) -> None:
    """Remove the place's SKILL.md, if it is there, and its folder if nothing else is in it."""
    refuse_changed_meanwhile(place)
    if place.content is not None:
        with os_errors("remove", place.file):
            remove(place.file)
    with contextlib.suppress(OSError):
        place.folder.rmdir()


def back_up(place: Place, backups_dir: Path, now: datetime, *, dry_run: bool) -> Path | None:
    """A copy of what stands there, and its path; None where nothing does.

    dry_run: only the path that it would get.
    """
    if place.content is None:
        return None
    if Path(os.path.realpath(backups_dir)).is_relative_to(place.skills_dir):
        raise InstallError(
            f"The folder for backups, {backups_dir}, is inside the skills folder, where an agent "
            "would list them as skills.",
            "Set STASH_MCP_HOME to a folder outside it.",
        )
    stamp = f"{place.folder.name}-{now.astimezone(UTC):%Y%m%dT%H%M%SZ}"
    names = (f"{stamp}{f'-{number}' if number else ''}.md" for number in range(1_000_000))
    backup = next(backups_dir / name for name in names if not (backups_dir / name).exists())
    if not dry_run:
        private_dir(backups_dir)
        write_atomic(backup, place.content)
    return backup


def refuse_changed_meanwhile(place: Place) -> None:
    present = look(place.skills_dir, place.folder.name)
    if (present.folder_exists, present.content) != (place.folder_exists, place.content):
        raise InstallBusyError(
            f"{place.file} was changed while this was going on; it was left as it is.",
            "Do it again.",
        )


# --- the two ways ---


def _write_from_beside(place: Place, skill_text: str, prefix: str) -> None:
    beside = place.skills_dir.parent
    holder = tempfile.TemporaryDirectory(prefix=prefix, dir=beside, ignore_cleanup_errors=True)
    with holder:
        staged = Path(holder.name, place.folder.name)
        staged.mkdir()
        mode = _file_mode(place.file if place.content is not None else staged)
        _stage(staged / SKILL_FILE, skill_text, mode)
        refuse_changed_meanwhile(place)
        if place.folder_exists:
            replace(staged / SKILL_FILE, place.file)
        else:
            replace(staged, place.folder)


def _write_from_inside(place: Place, skill_text: str, prefix: str) -> None:
    with os_errors("install", place.file), _own_folder(place):
        mode = _file_mode(place.file if place.content is not None else place.folder)
        # A cleanup that fails must not make a failure of what was done.
        with tempfile.TemporaryDirectory(
            prefix=prefix, dir=place.folder, ignore_cleanup_errors=True
        ) as holder:
            staged = Path(holder, SKILL_FILE)
            _stage(staged, skill_text, mode)
            if place.folder_exists:
                refuse_changed_meanwhile(place)
            replace(staged, place.file)


def _stage(path: Path, skill_text: str, mode: int) -> None:
    with path.open("wb") as file:
        file.write(skill_text.encode())
        file.flush()
        os.fsync(file.fileno())
    path.chmod(mode)


@contextlib.contextmanager
def _own_folder(place: Place) -> Iterator[None]:
    """Make the skill's folder; if it was made here it goes again where the block fails."""
    place.folder.mkdir(exist_ok=place.folder_exists)
    try:
        yield
    except BaseException:
        if not place.folder_exists:
            with contextlib.suppress(OSError):
                place.folder.rmdir()
        raise


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


def _prefix(backups_dir: Path) -> str:
    """Of what this library stages: two libraries may install beside each other at one time."""
    ours = hashlib.sha256(os.fsencode(os.path.realpath(backups_dir))).hexdigest()[:8]
    return f"{TEMPORARY_PREFIX}{ours}-"


def _file_mode(model: Path) -> int:
    # A skill is shared with others: it gets the mode that the user's umask gives, or keeps its own.
    return stat.S_IMODE(model.stat().st_mode) & 0o666
