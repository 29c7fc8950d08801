"""What a run may cost and did cost, in plain words. An unknown price is said, and is never 0."""

from stash_mcp.backends.prices import BODY_TOKENS, REPLY_TOKENS
from stash_mcp.models import Plan, Usage
from stash_mcp.server.counting import count

UNKNOWN = "price not known"
_SMALLEST = 0.0001


def expected_cost(plan: Plan) -> str:
    """One sentence, for before anything is spent."""
    if plan.cost_usd_estimate is None:
        return f"Expected cost: {UNKNOWN}."
    return (
        f"Expected cost if every call is made: about {dollars(plan.cost_usd_estimate)}, at "
        f"{REPLY_TOKENS} tokens a reply and {BODY_TOKENS:,} a proposal."
    )


def spent(usage: Usage) -> str:
    """`40 calls, 9,000 tokens in, 800 out, $0.0123; 12 answers remembered`."""
    parts = []
    tokens_counted = usage.prompt_tokens or usage.completion_tokens
    if usage.calls and usage.cost_usd == 0 and not tokens_counted:
        # A connected agent's answers.
        parts.append(count(usage.calls, "call"))
    elif usage.calls:
        cost = UNKNOWN if usage.cost_usd is None else dollars(usage.cost_usd)
        tokens = f"{usage.prompt_tokens:,} tokens in, {usage.completion_tokens:,} out"
        parts.append(f"{count(usage.calls, 'call')}, {tokens}, {cost}")
    if usage.remembered:
        parts.append(f"{count(usage.remembered, 'answer')} remembered")
    return "; ".join(parts) or "no calls yet"


def dollars(amount: float) -> str:
    """Four decimals below a dollar, two from there on."""
    if 0 < amount < _SMALLEST:
        return f"less than ${_SMALLEST}"
    return f"${amount:.4f}" if amount < 1 else f"${amount:,.2f}"
