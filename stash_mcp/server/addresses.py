"""Addresses that a client names: what is refused before anything is looked up."""

from collections.abc import Callable, Collection
from typing import TYPE_CHECKING

from mcp.shared.exceptions import MCPError
from mcp.types import INVALID_PARAMS

from stash_mcp.errors import NotFoundError
from stash_mcp.server.refusals import in_words

if TYPE_CHECKING:
    from stash_mcp.backends.base import Backend

MOST_CHARACTERS = 4000
MOST_LISTENED = 100
"""By one client, or one stream."""
_SHOWN_CHARACTERS = 200


def check_length(uri: str) -> None:
    if len(uri) > MOST_CHARACTERS:
        raise MCPError(
            INVALID_PARAMS,
            f"The address has {len(uri):,} characters; there is none with more than "
            f"{MOST_CHARACTERS:,}.",
        )


def check_number(uris: Collection[str]) -> None:
    if len(uris) > MOST_LISTENED:
        raise MCPError(
            INVALID_PARAMS,
            f"No more than {MOST_LISTENED} addresses are listened to at once. Unsubscribe from "
            "those that are over.",
        )


def check_known(library: "Callable[[], Backend | None]", uri: str) -> None:
    """Blocking. Of runs and trainings only those that are there; the rest does not change, and a
    client may listen to what another program's addresses name.
    """
    from stash_mcp.server.jobs import find_job
    from stash_mcp.server.resource_uris import run_id_of

    check_length(uri)
    if "://" not in uri:
        raise MCPError(INVALID_PARAMS, f"There is no resource {uri[:_SHOWN_CHARACTERS]}.")
    run_id = run_id_of(uri)
    if run_id is None:
        return
    backend = library()
    if backend is None:
        raise MCPError(INVALID_PARAMS, "There are no runs yet.")
    try:
        find_job(backend, run_id)
    except NotFoundError as error:
        raise MCPError(INVALID_PARAMS, in_words(error)) from error
