"""Ids that say where a thing lies: those of Stash are shown with a prefix."""

from collections.abc import Iterable

from stash_mcp.errors import InputError

STASH_PREFIX = "stash:"


def is_stash(id: str) -> bool:
    return id.startswith(STASH_PREFIX)


def shown(stash_id: str) -> str:
    """An id of Stash as people and agents see it."""
    return f"{STASH_PREFIX}{stash_id}"


def raw(id: str) -> str:
    """As Stash has it."""
    return id.removeprefix(STASH_PREFIX)


def refuse_stash_ids(ids: Iterable[str]) -> None:
    """Raise InputError where something of Stash is meant for work on this machine."""
    for id in ids:
        if is_stash(id):
            raise InputError(
                f"'{id}' lies in Stash, and this is work on this machine.",
                "Bring it into the library first (stash-skills pull), or do the work at Stash.",
            )
