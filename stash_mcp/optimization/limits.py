"""When a run stops, and why. Asked before every batch, so no more than one is overshot."""

from collections.abc import Callable

from stash_mcp.models import RunRequest, StopReason

PERFECT = 0.9995
"""A mean score that nothing can visibly improve on."""


class SearchStopped(BaseException):
    """Ends a search from within. Not an Exception: GEPA must not take it for a failed proposal."""

    def __init__(self, reason: StopReason) -> None:
        super().__init__(reason)
        self.reason: StopReason = reason


class Limits:
    """spent: US dollars so far, None where a price is unknown. seconds: of work so far. replaying:
    whether the run goes where it has been before; it is not stopped on the way there."""

    def __init__(
        self,
        request: RunRequest,
        spent: Callable[[], float | None] = lambda: None,
        seconds: Callable[[], float] = lambda: 0.0,
        replaying: Callable[[], bool] = lambda: False,
    ) -> None:
        self._request = request
        self._spent = spent
        self._seconds = seconds
        self._replaying = replaying

    def check(self) -> None:
        """Raise SearchStopped where a cap is reached."""
        if self._replaying():
            return
        request = self._request
        if request.max_seconds is not None and self._seconds() >= request.max_seconds:
            raise SearchStopped("time")
        spent = self._spent()
        if request.max_cost_usd is not None and (spent or 0.0) >= request.max_cost_usd:
            raise SearchStopped("cost")
