import pytest

from stash_mcp.reward.progress import Reporter, TrainProgress


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def report_steps(
    clock: Clock, seconds: list[float], steps: int, parameters: int
) -> list[TrainProgress]:
    said: list[TrainProgress] = []
    reporter = Reporter(said.append, clock)
    reporter.begin(steps, parameters)
    for taken in seconds:
        clock.now += taken
        reporter.step(1, 0.5)
    return said


def test_the_time_left_is_of_the_pace_after_the_first_step(clock: Clock) -> None:
    said = report_steps(clock, [50, 2, 4, 3], steps=10, parameters=1)

    assert [p.seconds_left for p in said] == [None, None, None, 21.0, 18.0]
    assert said[-1].seconds_elapsed == 59


def test_a_training_of_hours_names_a_smaller_base_once(clock: Clock) -> None:
    said = report_steps(clock, [200] * 5, steps=100, parameters=600_000_000)

    notes = [p.note for p in said if p.note]
    assert len(notes) == 1
    assert said[3].note == notes[0]
    assert "about 5.4 hours" in notes[0]
    assert "all-MiniLM-L6-v2" in notes[0]


def test_a_training_of_hours_on_a_small_base_names_fewer_pairs(clock: Clock) -> None:
    said = report_steps(clock, [200] * 3, steps=100, parameters=22_000_000)

    assert "max_pairs" in str(said[3].note)


def test_a_pace_of_seconds_is_watched_for_ten_steps_before_it_is_a_warning(clock: Clock) -> None:
    said = report_steps(clock, [5] * 12, steps=1000, parameters=600_000_000)

    assert [p.step for p in said if p.note] == [10]


def test_a_slow_start_alone_is_no_warning(clock: Clock) -> None:
    said = report_steps(clock, [15, 15, 15, *[0.1] * 50], steps=1000, parameters=600_000_000)

    assert [p.note for p in said if p.note] == []


def test_a_short_training_is_not_commented_on(clock: Clock) -> None:
    said = report_steps(clock, [1] * 5, steps=100, parameters=600_000_000)

    assert [p.note for p in said if p.note] == []
