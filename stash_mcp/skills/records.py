"""Which record of the manifest is about a file: also of one that was moved since.

A project is renamed, or its `.claude` becomes a link into somebody's dotfiles: the file then has
another path than the manifest knows. It is the same one where the recorded path leads to it; or
where the recorded skills folder is gone and the file holds what we last wrote there.
"""

import contextlib
import os
from pathlib import Path

from stash_mcp.models import Installation
from stash_mcp.skills.manifest import Manifest
from stash_mcp.skills.place import Place
from stash_mcp.skills.versions import is_text_of


def record_of(manifest: Manifest, place: Place) -> Installation | None:
    """The last record of the place's file, under its path or the one that it had; None of a file
    that is not known.
    """
    return manifest.latest(str(place.file)) or _moved(manifest, place)


def copied_from(manifest: Manifest, place: Place) -> Installation | None:
    """The newest version of a skill of this name whose text the file holds: of its own path if
    there is one."""
    if place.content is None:
        return None
    rows = [
        row
        for row in manifest.all()
        if row.name == place.folder.name
        and row.kind != "uninstall"
        and is_text_of(place.content, row.sha256)
    ]
    rows.sort(key=lambda row: row.path == str(place.file))
    return rows[-1] if rows else None


def _moved(manifest: Manifest, place: Place) -> Installation | None:
    if place.content is None:
        return None
    rows = [
        row
        for row in manifest.latest_of_each()
        if row.name == place.folder.name and row.kind != "uninstall"
    ]
    linked = [row for row in rows if _is_same(row, place)]
    gone = [
        row
        for row in rows
        if not Path(row.path).parent.parent.exists() and is_text_of(place.content, row.sha256)
    ]
    return max(linked or gone, key=lambda row: row.installed_at, default=None)


def _is_same(row: Installation, place: Place) -> bool:
    with contextlib.suppress(OSError):
        return os.path.samefile(row.path, place.file)
    return False
