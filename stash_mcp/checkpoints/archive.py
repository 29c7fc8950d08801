"""A reward model as one file: tar.gz with the one top folder `reward-model/`.

`pack` is deterministic: the same files give the same bytes. `unpack` trusts nothing: it writes
plain files under names of its own checking, and what it wrote is verified before it is in place.
"""

import contextlib
import gzip
import os
import shutil
import tarfile
import tempfile
import zlib
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import BinaryIO

from stash_mcp.checkpoints.contract import verify_checkpoint
from stash_mcp.checkpoints.folder import staged_folder
from stash_mcp.errors import CheckpointError
from stash_mcp.storage.files import PRIVATE_FILE_MODE, os_errors, private_dir, replace

TOP_FOLDER = "reward-model"
MAX_UNPACKED_BYTES = 32 * 1024**3
"""Of all files together; a 0.6B model in float32 takes 2.4 GB."""
MAX_FILES = 256

# Weights do not compress; a higher level costs minutes and gains nothing.
_COMPRESS_LEVEL = 1
_CHUNK_BYTES = 1024 * 1024
_FIX = "Make the archive again (tar.gz with the one folder reward-model/) and import it again."


def pack(folder: Path, archive: Path) -> None:
    """Write the verified checkpoint in `folder` to `archive`, replacing what was there.

    Raises CheckpointError if it is none, StorageError if it cannot be written.
    """
    verify_checkpoint(folder)
    private_dir(archive.parent)
    with os_errors("write", archive), _staged_file(archive) as file:
        _write_archive(folder, file)


def unpack(archive: Path, into: Path, *, max_bytes: int = MAX_UNPACKED_BYTES) -> Path:
    """Make the folder `into` from an archive's one top folder, whatever its name; returns it.

    Raises CheckpointError for an archive that is damaged, too large, writes outside its folder or
    holds no sound checkpoint, and if `into` exists. A failure leaves nothing behind.
    """
    if into.exists():
        raise CheckpointError(f"There is something at {into} already.", "Choose another place.")
    if not archive.is_file():
        raise CheckpointError(f"There is no archive at {archive}.", "Check the path.")
    with staged_folder(into) as folder:
        with os_errors("unpack", archive), _archive_errors(archive):
            _extract(archive, folder, max_bytes)
        verify_checkpoint(folder)
    return into


def _write_archive(folder: Path, file: BinaryIO) -> None:
    # No file name and no time in the gzip header: the bytes depend on the files alone.
    with (
        gzip.GzipFile("", "wb", _COMPRESS_LEVEL, file, mtime=0) as compressed,
        tarfile.open(fileobj=compressed, mode="w", format=tarfile.PAX_FORMAT) as tar,
    ):
        for path in sorted(path for path in folder.rglob("*") if path.is_file()):
            _add(tar, path, f"{TOP_FOLDER}/{path.relative_to(folder).as_posix()}")


@contextlib.contextmanager
def _staged_file(target: Path) -> Iterator[BinaryIO]:
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=".stash-skills-")
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        replace(Path(name), target)
    finally:
        Path(name).unlink(missing_ok=True)


def _add(tar: tarfile.TarFile, path: Path, name: str) -> None:
    info = tarfile.TarInfo(name)
    info.size = path.stat().st_size
    with path.open("rb") as file:
        tar.addfile(info, file)


@contextlib.contextmanager
def _archive_errors(archive: Path) -> Iterator[None]:
    try:
        yield
    except (tarfile.TarError, gzip.BadGzipFile, zlib.error, EOFError) as error:
        raise CheckpointError(f"{archive} is not a whole tar.gz file: {error}.", _FIX) from error


def _extract(archive: Path, folder: Path, max_bytes: int) -> None:
    tops: set[str] = set()
    left, files = max_bytes, 0
    with tarfile.open(archive, mode="r:gz") as tar:
        for member in tar:
            # macOS's tar adds one such file of attributes for each file.
            if PurePosixPath(member.name).name.startswith("._"):
                continue
            top, inner = _checked_name(archive, member)
            tops.add(top)
            left, files = left - member.size, files + 1
            _check_bounds(archive, tops, left, files)
            if member.isreg():
                _write(tar, member, folder / inner)


def _checked_name(archive: Path, member: tarfile.TarInfo) -> tuple[str, Path]:
    """The member's top folder, and its path below that."""
    path = PurePosixPath(member.name)
    if path.is_absolute() or ".." in path.parts or set(member.name) & set("\\:\0"):
        raise CheckpointError(f"{archive} writes outside its folder: {member.name!r}.", _FIX)
    if not (member.isreg() or member.isdir()) or member.issparse():
        raise CheckpointError(
            f"{archive} holds {member.name!r}, which is neither a plain file nor a folder.", _FIX
        )
    if member.isreg() and len(path.parts) < 2:
        raise CheckpointError(f"{archive} holds {member.name!r} outside any folder.", _FIX)
    return (path.parts or (".",))[0], Path(*path.parts[1:])


def _check_bounds(archive: Path, tops: set[str], left: int, files: int) -> None:
    if len(tops - {"."}) > 1:
        names = ", ".join(sorted(tops - {"."}))
        raise CheckpointError(f"{archive} holds more than one top folder: {names}.", _FIX)
    if left < 0 or files > MAX_FILES:
        raise CheckpointError(f"{archive} holds more than a reward model does.", _FIX)


def _write(tar: tarfile.TarFile, member: tarfile.TarInfo, path: Path) -> None:
    source = tar.extractfile(member)
    if source is None or path.exists():
        raise CheckpointError(f"The archive names {member.name!r} twice.", _FIX)
    path.parent.mkdir(parents=True, exist_ok=True)
    with source, path.open("xb") as target:
        shutil.copyfileobj(source, target, _CHUNK_BYTES)
    path.chmod(PRIVATE_FILE_MODE)
