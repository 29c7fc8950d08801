"""What is about to be done to an installed skill, so that a kill is told from a person's edit.

A note stands from before a SKILL.md is changed until the manifest has it. Whoever finds one that a
killed process left completes the record where the file was changed, and drops the note.
"""

import contextlib
from collections.abc import Iterator
from pathlib import Path

from pydantic import ValidationError

from stash_mcp.errors import InstallBusyError, StashSkillsError
from stash_mcp.models import Installation
from stash_mcp.skills.manifest import Manifest
from stash_mcp.skills.versions import forget, sha256
from stash_mcp.skills.writing import LOCK_NAME, clean_up_around
from stash_mcp.storage.files import os_errors, private_dir, remove, try_lock, write_atomic

LOCK_SECONDS = 30.0
_NOTE = "installing.json"


@contextlib.contextmanager
def only_installer(manifest: Manifest, backups_dir: Path, *, dry_run: bool) -> Iterator[None]:
    """Hold the lock of all that is written into skills folders from this library, and complete what
    a killed one left. A dry run does neither, since both write.
    """
    if dry_run:
        yield
        return
    with try_lock(backups_dir.parent / LOCK_NAME, timeout=LOCK_SECONDS) as held:
        if not held:
            raise InstallBusyError(
                f"Another installation has been going on for {LOCK_SECONDS:.0f} s.",
                "Wait for it to finish and do it again.",
            )
        complete(manifest, backups_dir)
        yield


@contextlib.contextmanager
def noted(backups_dir: Path, wanted: Installation) -> Iterator[None]:
    """Leave a note of `wanted` for the block, which changes the file and records it.

    Where the block fails after the file was changed the note stays, for the next one to record.
    """
    note = private_dir(backups_dir) / _NOTE
    write_atomic(note, wanted.model_dump_json())
    try:
        yield
    except StashSkillsError:
        with contextlib.suppress(OSError):
            if not _is_done(wanted):
                remove(note)
        raise
    with os_errors("remove", note):
        remove(note)


def complete(manifest: Manifest, backups_dir: Path) -> None:
    """Do what a killed one left undone; the lock of installations is held."""
    note = backups_dir / _NOTE
    with os_errors("read", note):
        try:
            wanted = Installation.model_validate_json(note.read_bytes())
        except FileNotFoundError:
            return
        except ValidationError:
            # Of another release, or damaged: it only says less than the file and the manifest do.
            wanted = None
    if wanted is not None:
        clean_up_around(Path(wanted.path), backups_dir)
        _complete(wanted, manifest, backups_dir)
    with os_errors("remove", note):
        remove(note)


def complete_if_free(manifest: Manifest, backups_dir: Path) -> None:
    """`complete`, unless an installation is going on, whose note it is."""
    if (backups_dir / _NOTE).exists():
        with try_lock(backups_dir.parent / LOCK_NAME) as held:
            if held:
                complete(manifest, backups_dir)


def _complete(wanted: Installation, manifest: Manifest, backups_dir: Path) -> None:
    if manifest.latest(wanted.path) == wanted:
        return
    if _is_done(wanted):
        manifest.record(wanted)
        with contextlib.suppress(OSError):
            # Empty where its SKILL.md was just taken away; one that holds anything stays.
            Path(wanted.path).parent.rmdir()
    elif all(row.sha256 != wanted.sha256 for row in manifest.all()):
        forget(backups_dir, wanted.sha256)


def _is_done(wanted: Installation) -> bool:
    try:
        content = Path(wanted.path).read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return wanted.kind == "uninstall"
    return wanted.kind != "uninstall" and sha256(content) == wanted.sha256
