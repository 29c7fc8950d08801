"""The client of Stash, opened when it is first needed, with what the surroundings say by then."""

import threading
from collections.abc import Callable

from stash_mcp.errors import InputError, StashAddressError
from stash_mcp.settings import StashAccess
from stash_mcp.stash import Limits, StashClient, open_client
from stash_mcp.stash.address import address_of

Opener = Callable[[StashAccess, Limits], StashClient]

PATIENT = Limits()
BRIEF = Limits(connect_seconds=3, read_seconds=6, total_seconds=8, attempts=2)
"""For what nobody asked of Stash alone: a list of the library's runs, a look by the way."""


class StashDoor:
    """access: read anew each time, as the person may sign in while a server runs."""

    def __init__(
        self,
        access: Callable[[], StashAccess],
        limits: Limits,
        opener: Opener = open_client,
    ) -> None:
        self._access = access
        self._limits = limits
        self._opener = opener
        self._lock = threading.Lock()
        self._opened: tuple[StashAccess, StashClient] | None = None

    def has_key(self) -> bool:
        """InputError where the settings of Stash cannot be read."""
        return self._access().api_key is not None

    def server(self) -> str | None:
        """The base URL of the Stash that is set; None where the settings name none that is used."""
        try:
            return address_of(self._access()).server
        except (InputError, StashAddressError):
            return None

    def client(self) -> StashClient:
        """The same one as long as address and key stay; nothing is sent by this."""
        access = self._access()
        with self._lock:
            if self._opened is not None and self._opened[0] == access:
                return self._opened[1]
            client = self._opener(access, self._limits)
            # The former one may be in use by another thread: it is left to that.
            self._opened = (access, client)
            return client

    def close(self) -> None:
        with self._lock:
            opened, self._opened = self._opened, None
        if opened is not None:
            opened[1].close()
