"""One configuration file of an agent: read whole, changed as planned, or left as it is."""

import difflib
import os
import stat
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from stash_mcp.errors import ConfigFileError
from stash_mcp.storage.files import os_errors, private_dir, read_text, write_atomic

MAX_BYTES = 5_000_000
_BOM = "\ufeff"
_USUAL_MODE = 0o666


@dataclass(frozen=True)
class ConfigFile:
    """path: as the agent names it; real: where a link leads, which is what is written.
    text: without a byte order mark; None where there is no file.
    """

    path: Path
    real: Path
    text: str | None
    bom: bool = False

    def diff(self, text: str) -> str:
        """Unified, to `text`. Without lines around the changed ones, which may hold a key of
        another server.
        """
        lines = difflib.unified_diff(
            (self.text or "").splitlines(keepends=True),
            text.splitlines(keepends=True),
            fromfile=str(self.path),
            tofile=f"{self.path} (to be written)",
            n=0,
        )
        return "".join(line if line.endswith("\n") else f"{line}\n" for line in lines)


def read(path: Path) -> ConfigFile:
    """ConfigFileError for what is no file of a usable size; StorageError where it is not read."""
    with os_errors("read", path):
        real = Path(os.path.realpath(path))
        if not real.exists():
            if path.is_symlink():
                raise ConfigFileError("it is a link that leads nowhere", str(path))
            return ConfigFile(path, real, None)
        if not real.is_file():
            raise ConfigFileError("it is not a regular file", str(path))
        if real.stat().st_size > MAX_BYTES:
            raise ConfigFileError(f"it has more than {MAX_BYTES:,} bytes", str(path))
    text = read_text(real)
    return ConfigFile(path, real, text.removeprefix(_BOM), bom=text.startswith(_BOM))


def edited(file: ConfigFile, edit: Callable[[str], str]) -> str:
    """The file's text after `edit`; its refusals name the file."""
    try:
        return edit(file.text or "")
    except ConfigFileError as error:
        raise ConfigFileError(error.reason, str(file.path)) from error


def write(file: ConfigFile, text: str, backups_dir: Path, now: datetime) -> Path | None:
    """Replace the file's text in one step, after a copy into `backups_dir`, whose path is returned.

    The file keeps its mode, and a link stays one. Raises ConfigFileError where the file is not as
    it was read.
    """
    if read(file.path) != file:
        raise ConfigFileError("it was changed while this was going on", str(file.path))
    backup = None
    content = (_BOM if file.bom else "") + text
    if file.text is None:
        with os_errors("make the folder", file.real.parent):
            file.real.parent.mkdir(parents=True, exist_ok=True)
            # What the person's umask gives to new files is seen in what it gave to the folder.
            mode = stat.S_IMODE(file.real.parent.stat().st_mode) & _USUAL_MODE
    else:
        backup = keep(file.path.name, (_BOM if file.bom else "") + file.text, backups_dir, now)
        with os_errors("read", file.real):
            mode = stat.S_IMODE(file.real.stat().st_mode)
    write_atomic(file.real, content, mode=mode)
    return backup


def keep(name: str, text: str, backups_dir: Path, now: datetime) -> Path:
    """A private copy under a name that is free; its path."""
    stamp = f"{now.astimezone(UTC):%Y%m%dT%H%M%SZ}"
    names = (f"{stamp}{f'-{number}' if number else ''}-{name}" for number in range(1_000_000))
    folder = private_dir(backups_dir)
    backup = next(folder / name for name in names if not (folder / name).exists())
    write_atomic(backup, text)
    return backup
