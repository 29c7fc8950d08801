import pytest
from mcp import Client
from support.staging import Stage

from stash_mcp.models import Candidate
from stash_mcp.server.app import SkillServer
from stash_mcp.server.candidates import (
    best_first,
    changes,
    lineage,
    parent_of,
    select,
    telling_line,
)
from stash_mcp.server.skill_results import CandidateText


def candidate(number: int, body: str, score: float, *parents: int, **scores: float) -> Candidate:
    skill = f"---\nname: a\ndescription: b\n---\n\n{body}"
    return Candidate(number=number, skill=skill, score=score, parents=parents, scores=scores)


SEED = candidate(0, "Be polite.", 0.5, t1=0.4, t2=0.6)
CHILD = candidate(1, "# Orders\n\nBe polite.\nAsk for the number.", 0.4, 0, t1=0.4, t2=0.4)
GRANDCHILD = candidate(2, "# Orders\n\nAsk for the number.\nStay CALM.", 0.7, 1, t1=0.9, t2=0.5)
EQUAL = candidate(3, "Be polite. ", 0.5, 0)
ALL = [SEED, CHILD, GRANDCHILD, EQUAL]


def numbers(rows: list[Candidate]) -> list[int]:
    return [row.number for row in rows]


def test_the_best_comes_first_and_of_equals_the_older_one() -> None:
    assert numbers(best_first(ALL)) == [2, 0, 3, 1]
    assert numbers(select(ALL)) == [2, 0, 3, 1]


def test_candidates_are_sorted_by_age_either_way() -> None:
    assert numbers(select(ALL, order="oldest")) == [0, 1, 2, 3]
    assert numbers(select(ALL, order="newest")) == [3, 2, 1, 0]


def test_only_those_above_the_seed_or_with_a_text_in_their_body_are_kept() -> None:
    assert numbers(select(ALL, better_only=True)) == [2]
    assert numbers(select(ALL, contains="ask for")) == [2, 1]
    assert numbers(select(ALL, contains="calm", better_only=True)) == [2]
    # The frontmatter is the same for all of a run.
    assert select(ALL, contains="description") == []


def test_nothing_is_selected_of_nothing() -> None:
    assert select([], better_only=True, contains="x") == []


def test_a_line_of_descent_goes_from_the_seed_to_the_candidate() -> None:
    assert lineage(ALL, GRANDCHILD) == (0, 1, 2)
    assert lineage(ALL, SEED) == (0,)
    circle = [candidate(0, "a", 0.1), candidate(1, "b", 0.1, 2), candidate(2, "c", 0.1, 1)]
    assert lineage(circle, circle[1])[-1] == 1


def test_the_diff_starts_from_whatever_it_is_asked_against() -> None:
    assert parent_of(ALL, GRANDCHILD) == CHILD
    assert parent_of(ALL, SEED) == SEED
    assert "+Stay CALM." in changes(GRANDCHILD, CHILD)
    assert "+Ask for the number." not in changes(GRANDCHILD, CHILD)
    assert "+Ask for the number." in changes(GRANDCHILD, SEED)
    assert changes(SEED, SEED) == ""


def test_a_candidate_is_told_from_others_by_its_first_new_line() -> None:
    assert telling_line(GRANDCHILD, CHILD) == "Stay CALM."
    assert telling_line(SEED, SEED) == "Be polite."
    rules = candidate(4, "---\n***\nBe polite.\nNew.", 0.1, 0)
    assert telling_line(rules, SEED) == "New."


def test_conversations_where_it_lost_most_come_first_and_are_paged() -> None:
    text = CandidateText.of(GRANDCHILD, ALL, "seed", limit=1, offset=0)
    assert [(row.trace_id, row.score, row.gain) for row in text.scores] == [("t2", 0.5, -0.1)]
    assert (text.scores_total, text.scores_next_offset) == (2, 1)
    rest = CandidateText.of(GRANDCHILD, ALL, "parent", limit=9, offset=1)
    assert [(row.trace_id, row.gain) for row in rest.scores] == [("t1", 0.5)]
    assert (rest.diff_to, rest.scores_next_offset) == (1, None)


def test_a_candidate_whose_conversations_were_not_scored_one_by_one_has_no_such_rows() -> None:
    assert CandidateText.of(EQUAL, ALL, "seed", limit=9, offset=0).scores == ()


@pytest.mark.anyio
async def test_the_tool_sorts_filters_and_pages(server: SkillServer, stage: Stage) -> None:
    run = stage.finished(("Be polite.", 0.4), ("Be kind.", 0.3), ("Ask first.", 0.6))
    async with Client(server) as client:

        async def listed(**arguments: object) -> dict[str, object]:
            answer = await client.call_tool("list_candidates", {"run_id": run.id, **arguments})
            assert not answer.is_error, answer.content
            return answer.structured_content or {}

        oldest = await listed(sort="oldest", limit=2)
        assert [row["candidate"] for row in oldest["candidates"]] == [0, 1]  # type: ignore[attr-defined]
        assert (oldest["total"], oldest["next_offset"]) == (3, 2)
        better = await listed(better_only=True)
        assert [row["line"] for row in better["candidates"]] == ["Ask first."]  # type: ignore[attr-defined]
        none = await listed(contains="refund")
        assert (none["candidates"], none["total"]) == ([], 0)
        assert "without a filter" in str(none["next"])


@pytest.mark.anyio
async def test_the_tool_shows_one_with_lineage_diff_and_scores_by_conversation(
    server: SkillServer, stage: Stage
) -> None:
    run = stage.finished(("Be polite.", 0.4), ("Ask first.", 0.6))
    async with Client(server) as client:
        arguments = {"run_id": run.id, "candidate": 1, "diff_to": "parent", "limit": 1}
        answer = await client.call_tool("list_candidates", arguments)
    shown = (answer.structured_content or {})["text"]
    assert shown["lineage"] == [0, 1]
    assert shown["diff_to"] == 0
    assert "+Ask first." in shown["diff"]
