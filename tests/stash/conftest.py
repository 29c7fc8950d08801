"""A running stand-in, and clients of it that never really wait."""

from collections.abc import Iterator

import pytest
from stand_in_stash import StandIn, stand_in

from stash_mcp.settings import StashAccess
from stash_mcp.stash import Limits, StashClient, open_client

QUICK = Limits(connect_seconds=5, read_seconds=5, total_seconds=10)


@pytest.fixture
def stash() -> Iterator[StandIn]:
    with stand_in() as running:
        yield running


@pytest.fixture
def pauses() -> list[float]:
    """What the client would have slept, in order."""
    return []


@pytest.fixture
def client(stash: StandIn, pauses: list[float]) -> Iterator[StashClient]:
    access = StashAccess(stash.base_url, stash.key, "a test", "a test")
    with open_client(access, QUICK, sleep=pauses.append) as opened:
        yield opened
