from collections.abc import Iterator
from pathlib import Path

import pytest
from stand_in_stash import StandIn, stand_in
from support.both_sides import BothSides


@pytest.fixture
def stash() -> Iterator[StandIn]:
    with stand_in() as running:
        yield running


@pytest.fixture
def sides(tmp_path: Path, stash: StandIn) -> Iterator[BothSides]:
    both = BothSides(tmp_path, stash)
    yield both
    both.close()
