import pytest

from benchmarks.__main__ import main
from benchmarks.benchmark import Effort
from benchmarks.catalogue import NAMES, rows_of

# Their parts run in tests/test_interrupted_runs.py and tests/test_cancelling.py; each loads the
# libraries into one more process, which takes most of the time of a small one.
SLOW = {"interrupted_runs", "cancel_latency"}
# Its parts run in tests/skills/test_install_processes.py and tests/backends/.
SLOW |= {"skill_replace", "exactly_once"}


@pytest.mark.parametrize("name", [name for name in NAMES if name not in SLOW])
def test_each_benchmark_gives_rows_at_its_smallest_size(name: str) -> None:
    rows = rows_of(name, Effort.SMALLEST)
    assert rows
    for row in rows:
        assert row.measured
        assert (row.ours and row.reference) or row.measured.startswith("skipped: ")


def test_an_unknown_name_is_refused_with_the_known_ones(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit):
        main(["speed"])
    assert "in_sample_gain" in capsys.readouterr().err
