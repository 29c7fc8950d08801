"""Did the skill help? Held-out scores with an interval, and the answer in plain words."""

import math
import statistics
from collections.abc import Sequence

from scipy import stats

from stash_mcp.models import Heldout

CONFIDENCE = 0.95


def paired(seed_scores: Sequence[float], best_scores: Sequence[float]) -> Heldout:
    """Mean gain and its 95 % interval (Student's t on the paired differences; two or more pairs).

    The scores are of the same held-out examples in the same order, each 0 to 1.
    """
    gains = [best - seed for seed, best in zip(seed_scores, best_scores, strict=True)]
    gain = statistics.fmean(gains)
    error = statistics.stdev(gains) / math.sqrt(len(gains))
    half = float(stats.t.ppf((1 + CONFIDENCE) / 2, len(gains) - 1)) * error
    return Heldout(
        examples=len(gains),
        seed_score=statistics.fmean(seed_scores),
        best_score=statistics.fmean(best_scores),
        gain=gain,
        low=gain - half,
        high=gain + half,
    )


def verdict(
    *, seed_score: float, best_score: float, examples: int, candidates: int, heldout: Heldout | None
) -> str:
    """What the numbers say, for somebody who decides whether to install the skill.

    seed_score and best_score are means over the `examples` that the skill was optimised on.
    """
    if best_score <= seed_score:
        return (
            f"No improvement: none of the {candidates - 1} accepted proposals scored above the "
            f"seed ({seed_score:.3f}) on the {examples} conversations."
            if candidates > 1
            else f"No improvement: no proposal beat the seed ({seed_score:.3f})."
        )
    in_sample = (
        f"On the {examples} conversations that it was optimised on the score rose from "
        f"{seed_score:.3f} to {best_score:.3f}"
    )
    if heldout is None:
        return (
            f"Unproven: {in_sample[0].lower()}{in_sample[1:]}, but no conversations were held "
            "out, and a best of several always looks better on its own examples. Read the skill "
            "before you trust the number."
        )
    measured = (
        f"on {heldout.examples} held-out conversations it went from {heldout.seed_score:.3f} to "
        f"{heldout.best_score:.3f} ({heldout.gain:+.3f}, 95 % interval {heldout.low:+.3f} to "
        f"{heldout.high:+.3f})"
    )
    if heldout.low > 0:
        return f"Improved: {measured}. {in_sample}."
    if heldout.high < 0:
        return f"Worse: {measured}. {in_sample}, which was luck. Do not install it."
    return f"No reliable improvement: {measured}; the interval includes 0. {in_sample}."
