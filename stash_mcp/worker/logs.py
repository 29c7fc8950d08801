"""A job's `worker.log`: time stamps, bounded, without secrets, its last line the newest."""

import contextlib
import logging
import os
from collections.abc import Iterator, Sequence
from io import TextIOWrapper
from logging.handlers import RotatingFileHandler
from pathlib import Path

from stash_mcp.redaction import redact
from stash_mcp.storage.files import PRIVATE_FILE_MODE, os_errors

LOG = logging.getLogger("stash_mcp.worker")
MAX_BYTES = 5_000_000


class _RedactingFormatter(logging.Formatter):
    def __init__(self, secrets: Sequence[str]) -> None:
        super().__init__("%(asctime)s %(levelname)s %(message)s")
        self._secrets = tuple(secrets)

    def format(self, record: logging.LogRecord) -> str:
        return redact(super().format(record), self._secrets)


class _PrivateFileHandler(RotatingFileHandler):
    """Every file that it makes is readable by this user alone, from its first moment."""

    def _open(self) -> TextIOWrapper:
        return open(
            self.baseFilename,
            "a",
            encoding=self.encoding,
            errors=self.errors,
            opener=lambda path, flags: os.open(path, flags, PRIVATE_FILE_MODE),
        )


@contextlib.contextmanager
def job_log(path: Path, secrets: Sequence[str]) -> Iterator[None]:
    """Send this process's log records to `path` for the block; one older part is kept beside."""
    with os_errors("open", path):
        handler = _PrivateFileHandler(
            path, maxBytes=MAX_BYTES, backupCount=1, encoding="utf-8", errors="replace"
        )
    handler.setFormatter(_RedactingFormatter(secrets))
    root = logging.getLogger()
    root.addHandler(handler)
    LOG.setLevel(logging.INFO)
    try:
        yield
    finally:
        root.removeHandler(handler)
        handler.close()
