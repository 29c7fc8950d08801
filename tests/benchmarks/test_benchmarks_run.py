import pytest

from benchmarks.__main__ import main
from benchmarks.benchmark import Effort
from benchmarks.catalogue import NAMES, rows_of

# Their parts run in tests/test_interrupted_runs.py and tests/test_cancelling.py; each loads the
# libraries into one more process, which takes most of the time of a small one.
SLOW = {"interrupted_runs", "cancel_latency"}


@pytest.mark.parametrize("name", [name for name in NAMES if name not in SLOW])
def test_each_benchmark_gives_rows_at_its_smallest_size(name: str) -> None:
    rows = rows_of(name, Effort.SMALLEST)
    assert rows
    for row in rows:
        assert row.measured
        assert (row.ours and row.reference) or row.measured.startswith("skipped: ")


def test_no_reader_of_a_skill_finds_it_missing_or_in_part() -> None:
    missing, partial, *_ = rows_of("skill_replace", Effort.SMALLEST)
    assert missing.ours.startswith("0 of ")
    assert partial.ours.startswith("0 of ")


def test_an_unknown_name_is_refused_with_the_known_ones(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit):
        main(["speed"])
    assert "in_sample_gain" in capsys.readouterr().err
