"""Did the skill help? Held-out scores with an interval, and the answer in plain words."""

import math
import statistics
from collections.abc import Sequence

# Not scipy.stats, whose quantile is this one: loading that takes a second of every worker's start.
from scipy.special import stdtrit

from stash_mcp.models import Heldout, TrainMetrics

CONFIDENCE = 0.95
ENOUGH_PAIRS = 20


def paired(seed_scores: Sequence[float], best_scores: Sequence[float]) -> Heldout:
    """Mean gain and its 95 % interval (Student's t on the paired differences; two or more pairs).

    The scores are of the same held-out examples in the same order, each 0 to 1.
    """
    gains = [best - seed for seed, best in zip(seed_scores, best_scores, strict=True)]
    gain = statistics.fmean(gains)
    error = statistics.stdev(gains) / math.sqrt(len(gains))
    half = float(stdtrit(len(gains) - 1, (1 + CONFIDENCE) / 2)) * error
    return Heldout(
        examples=len(gains),
        seed_score=statistics.fmean(seed_scores),
        best_score=statistics.fmean(best_scores),
        gain=gain,
        low=gain - half,
        high=gain + half,
    )


def verdict(
    *,
    seed_score: float,
    best_score: float,
    examples: int,
    candidates: int,
    heldout: Heldout | None,
    kept_back: int = 0,
    failed: int = 0,
    heldout_failed: int = 0,
) -> str:
    """What the numbers say, for somebody who decides whether to install the skill.

    seed_score and best_score are means over the `examples` that the skill was optimised on.
    kept_back: conversations that were held out, measured or not. failed: requests of the best
    candidate that the task model rejected. heldout_failed: the same of the held-out measure, of
    seed and best together.
    """
    if best_score <= seed_score:
        said = _no_gain(seed_score, examples, candidates)
    else:
        in_sample = (
            f"On the {examples} conversations that it was optimised on the score rose from "
            f"{seed_score:.3f} to {best_score:.3f}"
        )
        said = _unproven(in_sample, kept_back) if heldout is None else _proven(in_sample, heldout)
    if failed:
        said += (
            f" The task model rejected {failed} of the best candidate's {examples} requests, which "
            "count 0; the log has its words."
        )
    if heldout is not None and heldout_failed:
        said += (
            f" The task model rejected {heldout_failed} of the {2 * heldout.examples} requests on "
            "the held-out conversations, which count 0 there."
        )
    return said


def _no_gain(seed_score: float, examples: int, candidates: int) -> str:
    if candidates > 1:
        return (
            f"No improvement: none of the {candidates - 1} accepted proposals scored above the "
            f"seed (in-sample {seed_score:.3f}) on the {examples} conversations."
        )
    return f"No improvement: no proposal beat the seed (in-sample {seed_score:.3f})."


def _unproven(in_sample: str, kept_back: int) -> str:
    why = (
        f"a cap left nothing to measure the {kept_back} held-out conversations with"
        if kept_back
        else "no conversations were held out"
    )
    return (
        f"Unproven: {in_sample[0].lower()}{in_sample[1:]}, but {why}, and a best of several always "
        "looks better on its own examples. Read the skill before you trust the number."
    )


def _proven(in_sample: str, heldout: Heldout) -> str:
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


def caution(metrics: TrainMetrics | None) -> str:
    """How far the judge itself can be believed; empty where nothing speaks against it.

    metrics: of the reward model's training; None for one that was trained elsewhere.
    """
    if metrics is None:
        return "How well the reward model ranks replies is not known here: it was imported."
    if metrics.eval_accuracy is None:
        return "The reward model was not checked on any held-out pair: read some replies first."
    length = metrics.by_length
    if metrics.eval_pairs < ENOUGH_PAIRS:
        pairs = "pair" if metrics.eval_pairs == 1 else "pairs"
        alone = "" if length is None else f", of which length alone ranks {length:.0%} right"
        return (
            f"The reward model was checked on only {metrics.eval_pairs} held-out {pairs} "
            f"({ENOUGH_PAIRS} would say something){alone}: read some replies before you believe it."
        )
    if length is not None and metrics.eval_accuracy <= length:
        return (
            f"The reward model ranks held-out pairs no better ({metrics.eval_accuracy:.0%}) "
            f"than their length does ({length:.0%}): read some replies before you believe it."
        )
    return ""


def doubted(verdict: str, caution: str) -> str:
    """The verdict with what speaks against the judge: behind it, and where it praises in front."""
    if not caution:
        return verdict
    praise = "Improved, as far as the reward model can be believed:"
    return f"{verdict.replace('Improved:', praise, 1)} {caution}"
