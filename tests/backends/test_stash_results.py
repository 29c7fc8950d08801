"""What a run of Stash came to: its best skill can be read and installed, and the verdict is true,
whatever its list of candidates looks like.
"""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stash_mcp.backends.local.guards import held_back
from stash_mcp.backends.stash import views
from stash_mcp.models import InstallTarget, InstallWish
from stash_mcp.stash.shapes import RunShape

TEXTS = st.sampled_from(["seed", "best", "best\n", "other", ""])
SCORES = st.sampled_from([0.25, 0.5, 0.75])
ROWS = st.lists(
    st.fixed_dictionaries({"skill": st.none() | TEXTS, "score": st.none() | SCORES}), max_size=5
)
WISH = InstallWish(targets=(InstallTarget(agent="x", scope="user", skills_dir="/x"),))


def succeeded(**told: object) -> RunShape:
    now = datetime(2026, 1, 5, tzinfo=UTC)
    facts = {"reward_model_id": "m", "task_model": "t", "reflection_model": "r"}
    return RunShape(
        id="r", status="succeeded", created_at=now, max_metric_calls=40, **{**facts, **told}
    )


ANSWERS = st.builds(
    succeeded,
    seed_skill=st.none() | TEXTS,
    seed_score=st.none() | SCORES,
    best_skill=st.none() | TEXTS,
    best_score=st.none() | SCORES,
    candidates=st.none() | ROWS.map(tuple),
)


@given(ANSWERS)
def test_the_verdict_follows_from_the_scores_and_the_best_is_its_text(shape: RunShape) -> None:
    run, listed = views.run(shape), views.candidates(shape)
    numbers = [row.number for row in listed]
    assert numbers == sorted(set(numbers))
    best = [row for row in listed if row.number == run.best_candidate]
    assert [row.skill for row in best] == [shape.best_skill] * len(best)
    known = [row for row in shape.candidates or () if row.skill == shape.best_skill]
    scored = shape.best_score is not None or any(row.score is not None for row in known)
    assert bool(best) == (shape.best_skill is not None and scored) or not shape.best_score
    no_gain = (run.verdict or "").startswith("No improvement:")
    if None not in (shape.seed_score, shape.best_score) and shape.best_skill is not None:
        higher = shape.best_score > shape.seed_score  # type: ignore[operator]
        assert no_gain == (not higher or shape.best_skill == shape.seed_skill)


@given(ANSWERS)
def test_number_0_is_the_seed_and_the_others_keep_their_order(shape: RunShape) -> None:
    listed = {row.number: row for row in views.candidates(shape)}
    if shape.seed_skill is not None and 0 in listed:
        assert listed[0].skill == shape.seed_skill
    rows = shape.candidates or ()
    if rows and shape.seed_skill in (None, rows[0].skill):
        for number, row in listed.items():
            if number < len(rows):
                assert row.skill == rows[number].skill, "the number is the place"
    told = [row.skill for row in rows if row.skill is not None and row.score is not None]
    texts = [row.skill for row in listed.values()]
    assert [text for text in texts if text == "other"].count("other") >= told.count("other")


@given(ANSWERS)
def test_a_gain_is_never_held_back_as_none(shape: RunShape) -> None:
    run = views.run(shape).model_copy(update={"install": WISH})
    gains = None not in (run.seed_score, run.best_score) and run.best_score > run.seed_score  # type: ignore[operator]
    if gains and run.best_candidate and shape.best_skill != shape.seed_skill:
        assert held_back(run) is None
    if gains and run.best_candidate is None:
        assert "did not give the skill" in (held_back(run) or "")


@pytest.mark.parametrize("rows", [(), None, ({"skill": "seed", "score": 0.5},)])
def test_a_best_that_is_not_listed_is_the_last_candidate(
    rows: tuple[dict[str, object], ...] | None,
) -> None:
    shape = succeeded(
        seed_skill="seed", seed_score=0.5, best_skill="best", best_score=0.6, candidates=rows
    )
    listed = [(row.number, row.skill, row.score) for row in views.candidates(shape)]
    assert listed == [(0, "seed", 0.5), (1, "best", 0.6)]
    run = views.run(shape)
    assert run.best_candidate == 1
    assert "rose from 0.500 to 0.600" in (run.verdict or "")


def test_the_runs_own_scores_are_taken_where_a_row_has_others() -> None:
    rows = ({"skill": "seed", "score": 0.4}, {"skill": "best", "score": 0.7})
    told = {"seed_skill": "seed", "best_skill": "best", "candidates": rows}
    run = views.run(succeeded(seed_score=0.5, best_score=0.6, **told))
    assert (run.seed_score, run.best_score) == (0.5, 0.6)
    without = views.run(succeeded(**told))
    assert (without.seed_score, without.best_score) == (0.4, 0.7)


def test_a_best_whose_text_is_missing_is_not_called_no_improvement() -> None:
    run = views.run(succeeded(seed_skill="seed", seed_score=0.5, best_score=0.6))
    assert run.best_candidate is None
    assert "does not give the skill that it calls the best" in (run.verdict or "")
