"""Workers killed at random moments; `make bench` does the same a hundred times and more."""

import signal
from pathlib import Path

import pytest
from support.tiny_models import save_tiny_base

from benchmarks.interrupted_runs import Size, disturb

WORDS = "user assistant hello please no idea asks for the order number says when an answer comes"


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="this system has no SIGKILL")
@pytest.mark.timeout(240)
def test_runs_whose_workers_are_killed_end_as_if_nothing_had_happened(tmp_path: Path) -> None:
    report = disturb(Size(kills=3, seed=7), save_tiny_base(tmp_path, WORDS))
    assert report.kills == 3
    assert report.different_results == 0
    assert report.lost_candidates == 0
    assert report.repeated_answers == 0
