import pytest

from stash_mcp.models import RunRequest, StopReason
from stash_mcp.optimization.limits import Limits, SearchStopped


def request(**limits: float) -> RunRequest:
    return RunRequest.model_validate(
        {
            "reward_model_id": "rm",
            "task_model": "m",
            "reflection_model": "r",
            "max_metric_calls": 40,
            **limits,
        }
    )


@pytest.mark.parametrize(
    ("limits", "spent", "seconds", "reason"),
    [
        ({"max_seconds": 10}, None, 10.0, "time"),
        ({"max_cost_usd": 2}, 2.0, 0.0, "cost"),
    ],
)
def test_a_cap_that_is_reached_stops_the_search_with_its_reason(
    limits: dict[str, float], spent: float | None, seconds: float, reason: StopReason
) -> None:
    caps = Limits(request(**limits), lambda: spent, lambda: seconds)
    with pytest.raises(SearchStopped) as stopped:
        caps.check()
    assert stopped.value.reason == reason


def test_below_every_cap_nothing_happens() -> None:
    caps = Limits(request(max_seconds=10, max_cost_usd=2), lambda: 1.99, lambda: 9.9)
    assert caps.check() is None
    assert Limits(request()).check() is None


def test_a_run_that_goes_where_it_was_before_is_not_stopped_on_the_way() -> None:
    replaying = [True]
    caps = Limits(request(max_seconds=10), lambda: None, lambda: 11, lambda: replaying[0])
    caps.check()
    replaying[0] = False
    with pytest.raises(SearchStopped):
        caps.check()


def test_a_stop_is_no_exception_that_somebody_might_swallow() -> None:
    assert not issubclass(SearchStopped, Exception)
