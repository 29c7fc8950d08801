"""The bearer token of the HTTP server: the person's own, or one that is made once and kept."""

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from stash_mcp.errors import InputError, LibraryBusyError, StorageError
from stash_mcp.storage.files import PRIVATE_FILE_MODE, os_errors, read_text, try_lock, write_atomic

SHORTEST = 16
_BUSY_SECONDS = 10.0


@dataclass(frozen=True)
class Token:
    """path: of the file that holds it; None where the environment gave it."""

    value: str = field(repr=False)
    path: Path | None


def token_of(given: str | None, path: Path, make: Callable[[], str]) -> Token:
    """`given` if there is one, else what is in the file at `path`, which is made where it is
    missing. No error shows a token.
    """
    if given is not None:
        if not _is_sound(given):
            raise InputError(
                f"STASH_MCP_TOKEN is not fit for a token: it takes at least {SHORTEST} ASCII "
                "characters without spaces.",
                "Set it to a long random text, or leave it out and one is made.",
            )
        return Token(given, None)
    # Two servers that start at once share the token of one.
    with try_lock(path.with_name(f"{path.name}.lock"), timeout=_BUSY_SECONDS) as ours:
        if not ours:
            raise LibraryBusyError(
                f"Another process holds the token's file {path}.", "Do it again in a moment."
            )
        if not path.exists():
            write_atomic(path, make() + "\n")
        return Token(_kept(path), path)


def _kept(path: Path) -> str:
    value = read_text(path).strip()
    if not _is_sound(value):
        raise StorageError(
            f"There is no usable token in {path}.", "Remove that file, and a new one is made."
        )
    if os.name == "posix":
        with os_errors("make private", path):
            path.chmod(PRIVATE_FILE_MODE)
    return value


def _is_sound(value: str) -> bool:
    return len(value) >= SHORTEST and value.isascii() and value.isprintable() and " " not in value
