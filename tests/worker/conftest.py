from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from support.staging import Stage
from support.tiny_jobs import tiny_base

from stash_mcp.worker import drain as drain_module
from stash_mcp.worker import watchdog


@pytest.fixture(scope="session")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_base(tmp_path_factory.mktemp("base"))


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Stage:
    """Whose jobs are drained in this process: no lock is waited for, and the watchdog, which would
    end the process, sleeps.
    """
    monkeypatch.setattr(drain_module, "LOCK_SECONDS", 0.0)
    monkeypatch.setattr(watchdog, "BEAT_SECONDS", 600.0)
    return Stage(tmp_path)


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    """So small a model waits for its second thread longer than it computes."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)
