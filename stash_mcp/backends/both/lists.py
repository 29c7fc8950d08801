"""Stash's part of the lists that hold both sides: asked by the way, and never in the way."""

import time
from collections.abc import Callable
from typing import Protocol, TypeVar

from stash_mcp.errors import InputError, StashError
from stash_mcp.models import RewardModel, Run

RETRY_SECONDS = 30.0
"""After it could not be asked. A list of this machine's runs does not wait for Stash each time."""

T = TypeVar("T")


class Asked(Protocol):
    """What is asked of Stash here."""

    def list_runs(self) -> list[Run]: ...

    def list_reward_models(self) -> list[RewardModel]: ...

    def unreached(self) -> str | None:
        """What the last list left out as it could not be read, in words."""


class StashLists:
    """has_key: whether there is a key for Stash; without one nothing is asked, and nothing missing.

    clock: seconds that only grow.
    """

    def __init__(
        self,
        asked: Asked,
        has_key: Callable[[], bool],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._asked = asked
        self._has_key = has_key
        self._clock = clock
        self._retry_at = float("-inf")
        self.unreached: str | None = None

    def runs(self) -> list[Run]:
        return self._ask(self._asked.list_runs)

    def reward_models(self) -> list[RewardModel]:
        return self._ask(self._asked.list_reward_models)

    def _ask(self, read: Callable[[], list[T]]) -> list[T]:
        if self._clock() < self._retry_at:
            return []
        try:
            has_key = self._has_key()
            listed = read() if has_key else []
        except (StashError, InputError) as error:
            self._retry_at = self._clock() + RETRY_SECONDS
            self.unreached = (
                "Stash could not be asked; of its runs only those that this library knows are "
                f"listed, as they were last seen, and none of its reward models. {error}"
            )
            return []
        self.unreached = self._asked.unreached() if has_key else None
        return listed
