"""Rendered conversations of chosen lengths, for the reward model's benchmarks."""

import math
import random

SHORTEST = 15
_SAID = (
    "the order was late and you said that it would be here on monday but now we have to wait "
    "for a new one can you please help me with the money back or send it again today"
)


def conversation(tokens: int, choose: random.Random) -> str:
    """About so many tokens: nearly every one of its words is one token of English models."""
    words = choose.choices(_SAID.split(), k=max(2, tokens - 6))
    middle = len(words) // 2
    return f"user: {' '.join(words[:middle])}\n\nassistant: {' '.join(words[middle:])}"


def mixed_lengths(count: int, longest: int) -> list[str]:
    """From 15 tokens to `longest`, in no order, the same every time.

    Log-uniform: as with real conversations, most are short and a few are long.
    """
    choose = random.Random(0)
    ends = math.log(SHORTEST), math.log(longest)
    return [conversation(round(math.exp(choose.uniform(*ends))), choose) for _ in range(count)]
