"""What a run may cost, before anything is spent, and without loading the model library.

LiteLLM ships its price list as a JSON file; reading that file takes milliseconds, importing the
library seconds.
"""

import importlib.util
import json
from functools import cache
from pathlib import Path

from stash_mcp.models import AGENT_REFLECTION, BUILTIN_REFLECTION, CLAUDE_CODE, Plan, RunRequest

_PRICE_LIST = "model_prices_and_context_window_backup.json"
# Of a support reply, and of a body with the thinking before it: assumptions, stated in the plan.
REPLY_TOKENS = 300
BODY_TOKENS = 2_000
REFLECTION_PROMPT_TOKENS = 6_000


def expected_cost_usd(plan: Plan, request: RunRequest) -> float | None:
    """Dollars if every call of the plan is made; None where a price is not known."""
    task = _cost(
        request.task_model,
        request.task_api_base,
        plan.prompt_tokens_estimate,
        plan.task_calls_at_most * REPLY_TOKENS,
    )
    # What a connected agent spends on its answers is not ours to know.
    if request.reflection_model in (BUILTIN_REFLECTION, AGENT_REFLECTION):
        return task
    calls = plan.reflection_calls_at_most
    reflection = _cost(
        request.reflection_model,
        request.reflection_api_base,
        calls * REFLECTION_PROMPT_TOKENS,
        calls * BODY_TOKENS,
    )
    return None if task is None or reflection is None else task + reflection


def can_be_capped(request: RunRequest) -> bool:
    """Whether what every model of the run costs will be known as it is spent."""
    models = [
        (request.task_model, request.task_api_base),
        (request.reflection_model, request.reflection_api_base),
    ]
    return all(
        # The claude command says what each of its answers cost.
        model in (BUILTIN_REFLECTION, AGENT_REFLECTION)
        or model.startswith(CLAUDE_CODE)
        or _cost(model, api_base, 0, 0) is not None
        for model, api_base in models
    )


def _cost(model: str, api_base: str | None, tokens_in: int, tokens_out: int) -> float | None:
    # A server of one's own has no price that we know, whatever its model is called.
    if api_base is not None:
        return None
    prices = _prices()
    if model.startswith(CLAUDE_CODE):
        model = f"anthropic/{model.removeprefix(CLAUDE_CODE)}"
    price = prices.get(model) or prices.get(model.partition("/")[2])
    return None if price is None else tokens_in * price[0] + tokens_out * price[1]


@cache
def _prices() -> dict[str, tuple[float, float]]:
    """Dollars for a token in and a token out, by the model's name."""
    spec = importlib.util.find_spec("litellm")
    if spec is None or spec.origin is None:
        return {}
    path = Path(spec.origin).with_name(_PRICE_LIST)
    if not path.exists():
        return {}
    listed = json.loads(path.read_text(encoding="utf-8"))
    return {
        name: (facts["input_cost_per_token"], facts["output_cost_per_token"])
        for name, facts in listed.items()
        if "input_cost_per_token" in facts and "output_cost_per_token" in facts
    }
