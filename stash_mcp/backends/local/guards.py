"""What keeps a finished skill from being installed by itself, in words."""

from collections.abc import Sequence
from dataclasses import dataclass

from stash_mcp.models import Candidate, Run

_EPSILON = 1e-9
"""Of scores from 0 to 1: what the arithmetic of floats adds or loses is no gain and no lack."""

_IN_SAMPLE = "the conversations optimised on (in-sample)"


@dataclass(frozen=True)
class Version:
    """A candidate of a run, with all of the run's."""

    run: Run
    candidates: Sequence[Candidate]
    number: int


def held_back(run: Run) -> str | None:
    """Why this run's skill is not installed by itself; None where nothing stands against it."""
    if run.install.mode == "ask":
        return "You are asked first."
    if not run.install.targets:
        return "The run named no skills folder for it."
    if run.backend == "stash" and run.best_candidate is None:
        return "Stash did not give the skill that it calls the best."
    if not run.best_candidate or run.seed_score is None or run.best_score is None:
        return "No proposal beat the seed."
    gained, measured = gain(run, run.seed_score, run.best_score)
    if gained <= _EPSILON:
        return f"Its gain of {gained:+.3f} on {measured} is none."
    if gained < run.install.min_gain - _EPSILON:
        return f"Its gain of {gained:+.3f} on {measured} is less than {run.install.min_gain:g}."
    return None


def gain(run: Run, seed_score: float, best_score: float) -> tuple[float, str]:
    """Over the seed, and on what it was measured."""
    if run.heldout is not None:
        return run.heldout.gain, "held-out conversations"
    return best_score - seed_score, _IN_SAMPLE


def worse_than(present: Version, new: Version) -> str | None:
    """Why `new` does not replace `present` by itself, where the two can be compared.

    They can if one reward model scored replies of one task model. A run after more comments has
    another reward model, whose scores are on a scale of its own: then the gain over the run's own
    seed is all that is known, and has been looked at.
    """
    asked, before = new.run.request, present.run.request
    if (asked.reward_model_id, asked.task_model) != (before.reward_model_id, before.task_model):
        return None
    pairs = ((_heldout(present), _heldout(new)), (_score(present), _score(new)))
    names = ("held-out conversations", _IN_SAMPLE)
    for (old, score), measured in zip(pairs, names, strict=True):
        if old is None or score is None:
            continue
        if score >= old - _EPSILON:
            return None
        return (
            f"the skill of run {present.run.id} there scored {old:.3f} on {measured} by the same "
            f"reward model, and this one {score:.3f}."
        )
    return None


def _heldout(version: Version) -> float | None:
    run = version.run
    if run.heldout is None or version.number != run.best_candidate:
        return None
    return run.heldout.best_score


def _score(version: Version) -> float | None:
    scores = {row.number: row.score for row in version.candidates}
    return scores.get(version.number)
