"""What the server needs only after it has answered the client: made when it is first asked for."""

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from stash_mcp.backends.base import Backend  # noqa: F401 - in the string below

T = TypeVar("T")


class Once(Generic[T]):
    """Calling it gives what `make` returns. Made once, by whichever thread comes first, while the
    others wait; a making that failed is tried again by the next call.
    """

    def __init__(self, make: Callable[[], T]) -> None:
        self._make = make
        self._lock = threading.Lock()
        self._made: T | None = None

    @property
    def made(self) -> T | None:
        """What was made, or None; does not block."""
        return self._made

    def __call__(self) -> T:
        with self._lock:
            if self._made is None:
                self._made = self._make()
            return self._made


class LazyBackend(Once["Backend"]):
    """The backend, opened when a tool first needs it."""
