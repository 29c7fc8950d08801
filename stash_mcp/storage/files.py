"""Files: written whole or not at all, private, UTF-8 and LF.

`write_atomic` makes a reader see the old content or the new, never a part, on one machine's file
system. It does not serialise two writers (the last one wins): take a lock for that.
"""

import contextlib
import errno
import json
import os
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from filelock import FileLock, Timeout
from pydantic import BaseModel

from stash_mcp.errors import DiskFullError, NotWritableError, StorageError

PRIVATE_DIR_MODE = 0o700
PRIVATE_FILE_MODE = 0o600
TEMPORARY_PREFIX = ".stash-skills-"

_FULL = {errno.ENOSPC, errno.EDQUOT} if hasattr(errno, "EDQUOT") else {errno.ENOSPC}
_REFUSED = {errno.EACCES, errno.EPERM, errno.EROFS}
# Windows: access denied, sharing violation, lock violation. A scanner or an editor holds the file
# for a moment; these pass.
_WINDOWS_TRANSIENT = {5, 32, 33}
_REPLACE_ATTEMPTS = 20
_REPLACE_PAUSE_SECONDS = 0.05


@contextlib.contextmanager
def os_errors(action: str, path: Path) -> Iterator[None]:
    """Translate an OSError of the block; `action` completes "could not ..."."""
    try:
        yield
    except OSError as error:
        raise _translated(error, action, path) from error


def _translated(error: OSError, action: str, path: Path) -> StorageError:
    problem = f"Could not {action} {path}: {error.strerror or error}."
    if error.errno in _FULL:
        return DiskFullError(problem, "Free some space on that disk and do it again.")
    if error.errno in _REFUSED:
        return NotWritableError(problem, "Check the permissions of that folder and do it again.")
    return StorageError(problem, "Check that the path exists and is of the right kind.")


def private_dir(path: Path) -> Path:
    """Make `path` and its parents, readable by this user alone; returns it."""
    with os_errors("make the folder", path):
        missing = [folder for folder in path.parents if not folder.exists()]
        # Not `parents=True`: that gives the parents the usual mode, readable by others.
        for folder in [*reversed(missing), path]:
            folder.mkdir(mode=PRIVATE_DIR_MODE, exist_ok=True)
    return path


@contextlib.contextmanager
def private_parents(path: Path) -> Iterator[None]:
    """Make the folders above `path`; those made here go again, if empty, where the block fails."""
    missing = [folder for folder in path.parents if not folder.exists()]
    try:
        private_dir(path.parent)
        yield
    except BaseException:
        for folder in missing:
            with contextlib.suppress(OSError):
                folder.rmdir()
        raise


def write_atomic(
    path: Path,
    content: str | bytes | Iterable[str],
    *,
    staging: Path | None = None,
    mode: int = PRIVATE_FILE_MODE,
) -> None:
    """Replace `path` by `content` in one step.

    content: strings are written as UTF-8; an iterable is written as it comes, never held whole.
    staging: an existing folder on the same file system for the temporary file; default: beside it.
    """
    chunks = (content,) if isinstance(content, str | bytes) else content
    with os_errors("write", path):
        handle, name = tempfile.mkstemp(dir=staging or path.parent, prefix=TEMPORARY_PREFIX)
        temporary = Path(name)
        try:
            with os.fdopen(handle, "wb") as file:
                for chunk in chunks:
                    file.write(chunk.encode("utf-8") if isinstance(chunk, str) else chunk)
                file.flush()
                os.fsync(file.fileno())
            temporary.chmod(mode)
            replace(temporary, path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise


def replace(source: Path, target: Path) -> None:
    """`os.replace`, repeated within about a second where Windows says the target is in use."""
    _while_in_use(lambda: os.replace(source, target))


def remove(path: Path) -> None:
    """`os.unlink`, repeated in the same way."""
    _while_in_use(lambda: os.unlink(path))


def _while_in_use(change: Callable[[], None]) -> None:
    for attempt in range(_REPLACE_ATTEMPTS):
        try:
            change()
            return
        except OSError as error:
            # Only Windows has `winerror`.
            passes = getattr(error, "winerror", None) in _WINDOWS_TRANSIENT
            if not passes or attempt == _REPLACE_ATTEMPTS - 1:
                raise
            time.sleep(_REPLACE_PAUSE_SECONDS)


def write_jsonl(path: Path, rows: Iterable[BaseModel]) -> None:
    """One JSON object a line."""
    write_atomic(path, (f"{row.model_dump_json()}\n" for row in rows))


def write_json(path: Path, value: object) -> None:
    write_atomic(path, json.dumps(value, ensure_ascii=False, indent=2) + "\n")


def read_text(path: Path) -> str:
    """The whole file, as UTF-8; line ends as they are."""
    with os_errors("read", path):
        data = path.read_bytes()
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise StorageError(
            f"{path} is not UTF-8 text: byte {error.start} is 0x{data[error.start]:02x}.",
            "Save it as UTF-8, or restore it.",
        ) from error


def jsonl_lines(text: str) -> Iterator[tuple[int, str]]:
    """The non-blank lines with their numbers from 1.

    Split on LF alone: a message may contain U+2028 or U+0085, which `splitlines` would cut at.
    """
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            yield number, line


@contextlib.contextmanager
def try_lock(path: Path, timeout: float = 0) -> Iterator[bool]:
    """Hold the lock file at `path` for the block, waiting up to `timeout` seconds for it.

    Yields whether we hold it. The operating system drops it with the process, however that ends.
    """
    private_dir(path.parent)
    # Made here, since the lock would make it readable by others; who else may not make it says so.
    with contextlib.suppress(OSError):
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, PRIVATE_FILE_MODE))
    lock = FileLock(path, timeout=timeout)
    try:
        lock.acquire()
    except Timeout:
        # Before OSError, of which it is one.
        yield False
        return
    except OSError as error:
        raise _translated(error, "lock", path) from error
    try:
        yield True
    finally:
        lock.release()
