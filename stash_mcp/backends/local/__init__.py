"""The pipeline on this machine: the library, the job folders, and the worker that does the work.

Everything that can be refused is refused here, before a job exists; the worker meets only what
cannot be known in advance.
"""

import secrets
from collections.abc import Callable
from datetime import UTC, datetime

from stash_mcp.backends.base import Side
from stash_mcp.backends.local.housekeeping import Housekeeping
from stash_mcp.backends.local.measuring import Measuring
from stash_mcp.backends.local.reflections import Reflections
from stash_mcp.backends.local.reward_models import RewardModels
from stash_mcp.backends.local.traces import Traces
from stash_mcp.backends.local.watching import Watching
from stash_mcp.errors import UnsupportedError
from stash_mcp.runs.launcher import ensure_worker
from stash_mcp.settings import BackendName, Settings
from stash_mcp.skills.sight import AgentSession


class LocalBackend(Watching, Reflections, Measuring, Traces, RewardModels, Housekeeping):
    """All of the interface, in parts that share what `Workshop` holds."""

    def at(self, name: BackendName | None) -> Side:
        if name == "stash":
            raise UnsupportedError(
                "This library was opened without Stash.", "Leave backend out, or take local."
            )
        return self

    def close(self) -> None:
        """There are none."""

    def unreached(self) -> str | None:
        return None


def open_local_backend(
    settings: Settings,
    start_worker: Callable[[Settings], bool] = ensure_worker,
    session: AgentSession | None = None,
) -> LocalBackend:
    """The backend over the library of `settings.home`, which is made where it is missing.

    session: of the agent that it works for, where that is known.
    """
    return LocalBackend(
        settings,
        lambda: datetime.now(UTC),
        lambda: secrets.token_hex(4),
        start_worker,
        session=session,
    )
