"""A reward model as one file: tar.gz with the one top folder `reward-model/`.

`pack` is deterministic: the same files give the same bytes. What comes the other way is
`unpacking`'s.
"""

import contextlib
import gzip
import os
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from stash_mcp.checkpoints.contract import verify_checkpoint
from stash_mcp.storage.files import os_errors, private_dir, replace

TOP_FOLDER = "reward-model"

# Weights do not compress; a higher level costs minutes and gains nothing.
_COMPRESS_LEVEL = 1


def pack(folder: Path, archive: Path) -> None:
    """Write the verified checkpoint in `folder` to `archive`, replacing what was there.

    Raises CheckpointError if it is none, StorageError if it cannot be written.
    """
    verify_checkpoint(folder)
    private_dir(archive.parent)
    with os_errors("write", archive), _staged_file(archive) as file:
        _write_archive(folder, file)


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
