import pytest
from support.samples import example

from stash_mcp.errors import BudgetError
from stash_mcp.models import Plan, Skipped
from stash_mcp.runs import plan as planning


@pytest.mark.parametrize(
    ("examples", "minibatch", "expected"),
    # Six accepted proposals: examples + 6 * (2 * minibatch + examples), and 40 at least.
    [(1, 1, 40), (3, 3, 57), (10, 3, 106), (20, 3, 176), (40, 3, 316)],
)
def test_the_default_budget_reaches_six_proposals_and_is_never_under_40(
    examples: int, minibatch: int, expected: int
) -> None:
    budget = planning.default_budget(examples, minibatch)
    assert budget == expected
    assert planning.proposals_at_worst(budget, examples, minibatch) >= 6


@pytest.mark.parametrize(("examples", "minimum"), [(3, 21), (10, 42), (40, 132)])
def test_a_budget_below_two_proposals_is_refused_with_the_smallest_that_works(
    examples: int, minimum: int
) -> None:
    planning.check_budget(minimum, examples, 3)
    with pytest.raises(BudgetError, match=f"max_metric_calls={minimum}") as caught:
        planning.check_budget(minimum - 1, examples, 3)
    assert caught.value.minimum == minimum


@pytest.mark.parametrize("accepted", [True, False])
@pytest.mark.parametrize("examples", [3, 5, 10, 39, 60])
def test_the_counts_are_those_of_a_search_that_stops_before_what_might_not_fit(
    examples: int, accepted: bool
) -> None:
    for budget in range(examples, 400, 7):
        used, proposals = examples, 0
        while planning.next_proposal_fits(used, budget, examples, 3):
            used += 6 + (examples if accepted else 0)
            proposals += 1
        count = planning.proposals_at_worst if accepted else planning.proposals_at_best
        assert count(budget, examples, 3) == proposals
        assert used <= max(budget, examples)


def make(count: int, **changes: object) -> Plan:
    options: dict[str, object] = {
        "heldout": 0,
        "skipped": (Skipped(reason="starts with the assistant", count=2),),
        "budget": 106,
        "minibatch": 3,
        "reflection_model": "openai/r",
        **changes,
    }
    examples = [example(number, "Be kind.") for number in range(count)]
    return planning.make_plan(examples, **options)  # type: ignore[arg-type]


def test_a_plan_counts_what_the_run_may_spend() -> None:
    plan = make(14, heldout=4)
    assert (plan.examples, plan.heldout_examples) == (10, 4)
    assert plan.task_calls_at_most == 106 + 8
    assert plan.reflection_calls_at_most == 2 * planning.most_asked(106, 10, 3) + 4 == 58
    assert plan.commented_examples == 14
    assert plan.skipped[0].count == 2
    assert plan.prompt_tokens_estimate > plan.task_calls_at_most


def test_an_agent_is_asked_once_for_each_proposal_and_for_a_name_that_is_not_given() -> None:
    plan = make(10, reflection_model="agent")
    assert plan.reflection_calls_at_most == plan.proposals_at_best + 1
    named = make(10, reflection_model="agent", is_named=True)
    assert named.reflection_calls_at_most == named.proposals_at_best


def test_the_builtin_reflection_calls_no_model() -> None:
    assert make(10, reflection_model="builtin/comments").reflection_calls_at_most == 0


def test_few_conversations_and_none_held_out_are_noted() -> None:
    notes = " ".join(make(4).notes)
    assert "4 conversations" in notes
    assert "held out" in notes
    assert make(30, heldout=7).notes == ()
