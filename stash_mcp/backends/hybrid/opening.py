"""Both sides, opened for one pull, push or measure with what the environment says now."""

import contextlib
from collections.abc import Callable, Iterator
from datetime import UTC, datetime

from stash_mcp.backends.hybrid.report import Say
from stash_mcp.backends.hybrid.syncing import Hybrid
from stash_mcp.settings import Settings, StashAccess, stash_access
from stash_mcp.stash import open_client


@contextlib.contextmanager
def open_hybrid(
    settings: Settings,
    say: Say = lambda words: None,
    access: Callable[[], StashAccess] | None = None,
) -> Iterator[Hybrid]:
    """StashKeyError or StashAddressError where Stash is not to be reached with what is set."""
    known = stash_access(user_home=settings.user_home) if access is None else access()
    with open_client(known) as client:
        yield Hybrid(client, settings, lambda: datetime.now(UTC), say)
