"""The texts of all versions that were installed, each kept once, by its SHA-256."""

import contextlib
import hashlib
from collections.abc import Iterator
from pathlib import Path

from stash_mcp.errors import InstallError
from stash_mcp.storage.files import os_errors, private_parents, write_atomic


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def is_text_of(content: bytes, digest: str) -> bool:
    """Whether `content` is the text with this SHA-256: byte for byte, or but for line ends that are
    CRLF now, as Git may write them when it checks a file out.
    """
    return digest in (sha256(content), sha256(content.replace(b"\r\n", b"\n")))


@contextlib.contextmanager
def kept(backups_dir: Path, content: bytes) -> Iterator[None]:
    """Keep `content` for rolling back to it; not if the block, which installs it, fails."""
    path = _path(backups_dir, sha256(content))
    if path.exists():
        yield
        return
    with private_parents(path):
        write_atomic(path, content)
        try:
            yield
        except BaseException:
            with contextlib.suppress(OSError):
                path.unlink()
            raise


def forget(backups_dir: Path, digest: str) -> None:
    """Drop the text with this SHA-256, of which there is no version."""
    with contextlib.suppress(OSError):
        _path(backups_dir, digest).unlink()


def kept_text(backups_dir: Path, digest: str) -> str:
    """The text with this SHA-256; raises InstallError where it is gone or is another one now."""
    path = _path(backups_dir, digest)
    if not path.exists():
        raise InstallError(
            f"The text of that version is not kept any more: {path} is missing.",
            "Install the run's candidate again, or choose another version.",
        )
    with os_errors("read", path):
        content = path.read_bytes()
    if sha256(content) != digest:
        raise InstallError(
            f"The kept text of that version was changed: {path}.",
            "Install the run's candidate again, or choose another version.",
        )
    return content.decode()


def _path(backups_dir: Path, digest: str) -> Path:
    return backups_dir / "versions" / f"{digest}.md"
