"""The error for ratings that give too few preference pairs: what is there, and what to add."""

from stash_mcp.datasets.targets import RatingCounts
from stash_mcp.errors import PairsError

MIN_PAIRS = 2


def too_few_pairs(traces: RatingCounts, steps: RatingCounts) -> PairsError:
    """traces, steps: the ratings on whole conversations and on single steps."""
    found = traces.pairs + steps.pairs
    return PairsError(
        f"The ratings give {found} preference pair{'' if found == 1 else 's'}; a training needs "
        f"at least {MIN_PAIRS}. Whole conversations: {_counted(traces)}. Steps: {_counted(steps)}.",
        f"{_advice(traces, steps)} A pair is one rated +1 and one rated -1 of the same kind: two "
        "whole conversations, or two steps (annotate_trace).",
    )


def _counted(counts: RatingCounts) -> str:
    words = f"{counts.positive} positive, {counts.negative} negative"
    if counts.cancelled:
        words += f", {counts.cancelled} whose ratings cancel out"
    if counts.flagged:
        words += f", {counts.flagged} flagged as wrong and left out"
    return words


def _advice(traces: RatingCounts, steps: RatingCounts) -> str:
    positive, negative = traces.positive + steps.positive, traces.negative + steps.negative
    if traces.pairs + steps.pairs:
        return "Rate at least one more."
    if positive and negative:
        return (
            "The positive and the negative ratings are on different kinds: rate whole "
            "conversations both ways, or steps both ways."
        )
    if positive:
        return "All ratings are positive: rate some with -1 too."
    if negative:
        return "All ratings are negative: rate some with +1 too."
    if traces.cancelled + steps.cancelled:
        return "Every target has as many +1 as -1: flag the wrong ones, or rate others."
    if traces.flagged + steps.flagged:
        return "Every rating is flagged as wrong: take some flags back, or rate others."
    return "Nothing is rated yet: rate at least three, both ways."
