from pathlib import Path

import pytest
from support.claude_stand_in import stand_in

from stash_mcp.backends.claude_code import DEFAULT_CAP_USD, capped, check_command
from stash_mcp.errors import InputError
from stash_mcp.models import RunRequest


def request(task: str, reflection: str, **more: object) -> RunRequest:
    return RunRequest(
        reward_model_id="rm-1",
        task_model=task,
        reflection_model=reflection,
        max_metric_calls=40,
        **more,  # type: ignore[arg-type]
    )


def test_a_run_that_asks_the_claude_command_is_bounded_in_money() -> None:
    bounded, notes = capped(request("claude-code/haiku", "builtin/comments"))
    assert bounded.max_cost_usd == DEFAULT_CAP_USD
    assert any("5 US dollars" in note for note in notes)


@pytest.mark.parametrize(
    "given",
    [
        request("claude-code/haiku", "builtin/comments", max_cost_usd=0.5),
        request("anthropic/claude-haiku-4-5", "builtin/comments"),
    ],
)
def test_a_bound_of_the_persons_own_stays_and_other_models_get_none(given: RunRequest) -> None:
    assert capped(given) == (given, ())


def test_beside_a_model_without_a_price_the_plan_says_that_money_is_not_bounded() -> None:
    given = request("openai/mine", "claude-code/sonnet", task_api_base="http://localhost:1/v1")
    unbounded, notes = capped(given)
    assert unbounded.max_cost_usd is None
    assert any("no known price" in note for note in notes)


def test_a_missing_command_is_refused_before_a_run_exists(tmp_path: Path) -> None:
    with pytest.raises(InputError) as raised:
        check_command(["openai/x", "claude-code/haiku"], str(tmp_path / "claude"))
    assert "claude-code/haiku" in str(raised.value)
    check_command(["openai/x"], str(tmp_path / "claude"))
    check_command(["claude-code/haiku"], stand_in(tmp_path).path)
