"""A sound checkpoint, and archives made of it by hand."""

import gzip
import io
import tarfile
from pathlib import Path

import pytest
from support.staging import write_checkpoint


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    write_checkpoint(tmp_path / "made" / "model")
    return tmp_path / "made" / "model"


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def block(name: str, kind: bytes, size: int) -> bytes:
    """One header of a tar file; of a size that need not be true."""
    info = tarfile.TarInfo(name)
    info.type, info.size = kind, size
    return info.tobuf(tarfile.GNU_FORMAT)


def tar_of(checkpoint: Path, *more: tuple[tarfile.TarInfo, bytes], form: int = 2) -> bytes:
    """The checkpoint below `m/`, then more members; as a tar file that is not packed."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=form) as tar:
        for path in sorted(checkpoint.iterdir()):
            tar.add(path, f"m/{path.name}")
        for info, data in more:
            tar.addfile(info, io.BytesIO(data))
    return buffer.getvalue()


def packed(data: bytes) -> bytes:
    return gzip.compress(data, 1, mtime=0)
