"""How many requests to one model are in flight at once: fewer after a 429, more after successes.

Additive increase, multiplicative decrease, as TCP does it (Chiu and Jain, 1989): a refusal halves
the limit, each success adds its inverse, so that about one success of every slot adds one slot.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from stash_mcp.errors import ModelRateLimitError


class InFlight:
    """At most `most` at once, never fewer than one. For one event loop."""

    def __init__(self, most: int) -> None:
        self.limit = float(most)
        self._most = most
        self._active = 0
        self._changed = asyncio.Condition()

    @asynccontextmanager
    async def slot(self) -> AsyncIterator[None]:
        """Wait for a slot and hold it for the block, whose outcome moves the limit."""
        async with self._changed:
            await self._changed.wait_for(lambda: self._active < int(self.limit))
            self._active += 1
        try:
            yield
        except ModelRateLimitError:
            self.limit = max(1.0, self.limit / 2)
            raise
        else:
            self.limit = min(float(self._most), self.limit + 1 / self.limit)
        finally:
            self._active -= 1
            async with self._changed:
                self._changed.notify_all()
