"""How far a budget of metric calls reaches: GEPA's arithmetic, done before anything is spent.

Scoring the seed costs one metric call for each example. Every proposal costs two minibatches (the
parent's and its own), and each example once more when it is accepted. A run stops before a
proposal that might not fit any more, so the budget is never exceeded. Where several proposals are
made at once, the same holds for all of them together.
"""

import math
from collections.abc import Sequence

from stash_mcp.errors import BudgetError
from stash_mcp.models import AGENT_REFLECTION, BUILTIN_REFLECTION, Example, Plan, Skipped

MIN_PROPOSALS = 2
DEFAULT_PROPOSALS = 6
DEFAULT_METRIC_CALLS = 40
FEW_EXAMPLES = 10

_CHARACTERS_PER_TOKEN = 4
# What a skill adds to each prompt: measured bodies are 1,000 to 4,000 characters.
_SKILL_TOKENS = 600
# A refused proposal is asked again once, and an identity is asked for at most three times.
_REFLECTION_CALLS_PER_PROPOSAL = 2
_IDENTITY_CALLS = 4


def budget_for(proposals: int, examples: int, minibatch: int, at_once: int = 1) -> int:
    """Metric calls that reach `proposals` proposals even if each of them is accepted."""
    rounds = math.ceil(proposals / at_once)
    return examples + rounds * at_once * (2 * minibatch + examples)


def default_budget(examples: int, minibatch: int, at_once: int = 1) -> int:
    budget = budget_for(DEFAULT_PROPOSALS, examples, minibatch, at_once)
    return max(DEFAULT_METRIC_CALLS, budget)


def proposals_at_best(budget: int, examples: int, minibatch: int, at_once: int = 1) -> int:
    """None is accepted: each costs two minibatches, and room for accepting stays free."""
    rounds = (budget - (1 + at_once) * examples) // (at_once * 2 * minibatch)
    return max(0, rounds * at_once)


def proposals_at_worst(budget: int, examples: int, minibatch: int, at_once: int = 1) -> int:
    rounds = (budget - examples) // (at_once * (2 * minibatch + examples))
    return max(0, rounds * at_once)


def most_asked(budget: int, examples: int, minibatch: int, at_once: int = 1) -> int:
    """Proposals asked for if every one is refused: each then costs its parent's minibatch alone."""
    room = budget - examples - at_once * (2 * minibatch + examples)
    return 0 if room < 0 else (room // (at_once * minibatch) + 1) * at_once


def next_proposal_fits(
    used: int, budget: int, examples: int, minibatch: int, at_once: int = 1
) -> bool:
    """Whether `at_once` more proposals stay within the budget even if all are accepted."""
    return used + at_once * (2 * minibatch + examples) <= budget


def check_budget(budget: int, examples: int, minibatch: int, at_once: int = 1) -> None:
    """Refuse a budget that cannot be relied on for two proposals: one lucky one looks like success.

    Raises BudgetError with the smallest budget that can.
    """
    if proposals_at_worst(budget, examples, minibatch, at_once) >= MIN_PROPOSALS:
        return
    minimum = budget_for(MIN_PROPOSALS, examples, minibatch, at_once)
    raise BudgetError(
        f"A budget of {budget} metric calls cannot reach two proposals on {examples} "
        f"conversations in minibatches of {minibatch}.",
        f"Give max_metric_calls={minimum} or more, fewer conversations (trace_ids), or leave it "
        f"out to take {default_budget(examples, minibatch, at_once)}.",
        minimum,
    )


def make_plan(
    examples: Sequence[Example],
    *,
    heldout: int,
    skipped: Sequence[Skipped],
    budget: int,
    minibatch: int,
    reflection_model: str,
    at_once: int = 1,
    is_named: bool = False,
    seed_characters: int = 0,
) -> Plan:
    """examples: all of the run's; the last `heldout` of them are kept for the final measure.
    is_named: the skill's name and description were given. seed_characters: length of a seed that
    is a whole body already."""
    scored = len(examples) - heldout
    at_best = proposals_at_best(budget, scored, minibatch, at_once)
    calls = budget + 2 * heldout
    return Plan(
        examples=scored,
        heldout_examples=heldout,
        skipped=tuple(skipped),
        commented_examples=sum(bool(example.feedback) for example in examples),
        max_metric_calls=budget,
        proposals_at_best=at_best,
        proposals_at_worst=proposals_at_worst(budget, scored, minibatch, at_once),
        task_calls_at_most=calls,
        reflection_calls_at_most=_reflection_calls(
            reflection_model, at_best, most_asked(budget, scored, minibatch, at_once), is_named
        ),
        prompt_tokens_estimate=calls * _prompt_tokens(examples, seed_characters),
        notes=tuple(_notes(examples, heldout)),
    )


def _reflection_calls(model: str, at_best: int, asked: int, is_named: bool) -> int:
    """At most. What an agent submits is refused before it reaches the run, so it is asked once for
    each proposal that is tried."""
    if model == BUILTIN_REFLECTION:
        return 0
    if model == AGENT_REFLECTION:
        return at_best + (not is_named)
    return _REFLECTION_CALLS_PER_PROPOSAL * asked + _IDENTITY_CALLS


def _prompt_tokens(examples: Sequence[Example], seed_characters: int) -> int:
    characters = sum(
        len(example.system or "") + sum(len(message.content) for message in example.messages)
        for example in examples
    )
    skill = max(_SKILL_TOKENS, seed_characters // _CHARACTERS_PER_TOKEN)
    return characters // (_CHARACTERS_PER_TOKEN * len(examples)) + skill


def _notes(examples: Sequence[Example], heldout: int) -> list[str]:
    notes = []
    if len(examples) < FEW_EXAMPLES:
        notes.append(
            f"Only {len(examples)} conversations: at this number most of a gain is luck. "
            "30 or more give a number that can be believed."
        )
    if not heldout:
        notes.append(
            "No conversations are held out, so the scores are of the very conversations that the "
            "skill was optimised on and flatter it."
        )
    if not any(example.feedback for example in examples):
        notes.append(
            "None of these conversations has a comment: reflection has only scores to go by."
        )
    return notes
