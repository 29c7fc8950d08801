import asyncio

import pytest

from stash_mcp.errors import ModelRateLimitError
from stash_mcp.optimization.in_flight import InFlight

REFUSED = ModelRateLimitError("Too many.", "Wait.")


async def use(slots: InFlight, error: Exception | None = None) -> None:
    async with slots.slot():
        await asyncio.sleep(0)
        if error is not None:
            raise error


def test_a_refusal_halves_the_limit_down_to_one() -> None:
    async def scene() -> list[float]:
        slots, seen = InFlight(8), []
        for _ in range(5):
            with pytest.raises(ModelRateLimitError):
                await use(slots, REFUSED)
            seen.append(slots.limit)
        return seen

    assert asyncio.run(scene()) == [4, 2, 1, 1, 1]


def test_successes_bring_it_back_and_not_above_the_most() -> None:
    async def scene() -> list[int]:
        slots = InFlight(4)
        slots.limit = 1.0
        seen = []
        for _ in range(12):
            await use(slots)
            seen.append(int(slots.limit))
        return seen

    seen = asyncio.run(scene())
    assert seen == sorted(seen)
    assert seen[-1] == 4


def test_other_errors_leave_the_limit_alone_and_free_the_slot() -> None:
    async def scene() -> float:
        slots = InFlight(1)
        for _ in range(3):
            with pytest.raises(ValueError, match="other"):
                await use(slots, ValueError("other"))
        return slots.limit

    assert asyncio.run(scene()) == 1


def test_no_more_hold_a_slot_than_the_limit_allows() -> None:
    async def scene() -> int:
        slots, active, most = InFlight(3), 0, 0

        async def hold() -> None:
            nonlocal active, most
            async with slots.slot():
                active += 1
                most = max(most, active)
                await asyncio.sleep(0)
                active -= 1

        await asyncio.gather(*(hold() for _ in range(30)))
        return most

    assert asyncio.run(scene()) == 3
