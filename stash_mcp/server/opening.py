"""The backend, opened when a tool first needs it: the server answers the client before that."""

import threading
from collections.abc import Callable

from stash_mcp.backends.base import Backend


class LazyBackend:
    """Calling it gives the backend. Opened once, by whichever thread comes first; an opening that
    failed is tried again by the next call.
    """

    def __init__(self, open_backend: Callable[[], Backend]) -> None:
        self._open = open_backend
        self._lock = threading.Lock()
        self._backend: Backend | None = None

    def __call__(self) -> Backend:
        with self._lock:
            if self._backend is None:
                self._backend = self._open()
            return self._backend
