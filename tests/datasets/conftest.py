"""The folder of real conversations, for the tests marked `data`."""

import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def data_folder() -> Path:
    beside = Path(__file__).parents[2].parent / "shared" / "data"
    folder = Path(os.environ.get("STASH_SKILLS_DATA", beside))
    if not (folder / "tau-airline.traces.jsonl").is_file():
        pytest.skip("the folder of real conversations is not here")
    return folder
