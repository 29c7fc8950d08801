"""A folder written whole or not at all, and whether there is room for it."""

import contextlib
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from stash_mcp.errors import DiskFullError
from stash_mcp.storage.files import os_errors, private_dir, private_parents, replace


@contextlib.contextmanager
def staged_folder(target: Path) -> Iterator[Path]:
    """Yields an empty folder beside `target` that takes its place when the block ends well.

    A folder that was at `target` is replaced then. It is kept, and parents made for the new one go
    again, if the block or the exchange fails. Two renames make the exchange: a crash between them
    leaves the old folder under a `.stash-skills-` name.
    """
    with private_parents(target), _staging(target) as staging:
        made = staging / "new"
        with os_errors("write", target):
            made.mkdir()
        yield made
        with os_errors("write", target):
            _exchange(made, target, staging / "old")


@contextlib.contextmanager
def _staging(target: Path) -> Iterator[Path]:
    with os_errors("make a folder beside", target):
        staging = Path(tempfile.mkdtemp(dir=target.parent, prefix=".stash-skills-"))
    try:
        yield staging
    finally:
        shutil.rmtree(staging, ignore_errors=True)


def require_room(target: Path, needed: int) -> None:
    """Raise DiskFullError unless `needed` bytes are free where `target` will be written."""
    private_dir(target.parent)
    with os_errors("look at", target.parent):
        free = shutil.disk_usage(target.parent).free
    if free < needed:
        raise DiskFullError(
            f"The disk of {target.parent} has {free // 10**6} MB free; a reward model of this "
            f"size needs {needed // 10**6} MB.",
            "Free some space on that disk, or choose a smaller base model.",
        )


def _exchange(made: Path, target: Path, aside: Path) -> None:
    if not target.exists():
        replace(made, target)
        return
    replace(target, aside)
    try:
        replace(made, target)
    except OSError:
        replace(aside, target)
        raise
