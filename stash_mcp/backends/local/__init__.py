"""The pipeline on this machine: the library, the job folders, and the worker that does the work.

Everything that can be refused is refused here, before a job exists; the worker meets only what
cannot be known in advance.
"""

import secrets
from collections.abc import Callable
from datetime import UTC, datetime

from stash_mcp.backends.local.housekeeping import Housekeeping
from stash_mcp.backends.local.reward_models import RewardModels
from stash_mcp.backends.local.traces import Traces
from stash_mcp.backends.local.watching import Watching
from stash_mcp.runs.launcher import ensure_worker
from stash_mcp.settings import Settings


class LocalBackend(Watching, Traces, RewardModels, Housekeeping):
    """All of the interface, in parts that share what `Workshop` holds."""


def open_local_backend(
    settings: Settings, start_worker: Callable[[Settings], bool] = ensure_worker
) -> LocalBackend:
    """The backend over the library of `settings.home`, which is made where it is missing."""
    return LocalBackend(
        settings, lambda: datetime.now(UTC), lambda: secrets.token_hex(4), start_worker
    )
