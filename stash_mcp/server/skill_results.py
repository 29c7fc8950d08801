"""What the tool for candidates returns."""

from collections.abc import Sequence

from pydantic import Field

from stash_mcp.models import Candidate, Run
from stash_mcp.server.candidates import Against, changes, find, lineage, parent_of, telling_line
from stash_mcp.server.resource_uris import candidate_uri
from stash_mcp.server.results import Part, Result
from stash_mcp.server.shortening import fit, next_offset, one_line, shorten_within
from stash_mcp.server.wording import PARTIAL

SKILL_BYTES = 22_000
DIFF_BYTES = 7_500
SCORES_BYTES = 3_000
LINE_CHARACTERS = 160


class CandidateRow(Part):
    candidate: int = Field(description="0 is the seed")
    score: float = Field(description="Mean, 0 to 1")
    gain: float = Field(description="Over the seed")
    parents: tuple[int, ...]
    line: str = Field(description="First one that its parent does not have")

    @classmethod
    def of(cls, candidate: Candidate, candidates: Sequence[Candidate]) -> "CandidateRow":
        line = telling_line(candidate, parent_of(candidates, candidate))
        return cls(
            candidate=candidate.number,
            score=round(candidate.score, 4),
            gain=round(candidate.score - candidates[0].score, 4),
            parents=candidate.parents,
            line=one_line(line, LINE_CHARACTERS),
        )


class ExampleScore(Part):
    trace_id: str
    score: float
    gain: float | None = Field(None, description="Over the seed")


class CandidateText(Part):
    skill: str = Field(description="The whole SKILL.md")
    lineage: tuple[int, ...] = Field(description="From the seed to this one")
    diff_to: int = Field(description="The candidate that the diff starts from")
    diff: str = Field(description="Unified; empty where they are the same")
    scores: tuple[ExampleScore, ...] = Field(description="By conversation, worst gain first")
    scores_total: int
    scores_next_offset: int | None = None

    @classmethod
    def of(
        cls,
        candidate: Candidate,
        candidates: Sequence[Candidate],
        against: Against,
        limit: int,
        offset: int,
    ) -> "CandidateText":
        seed, skill = candidates[0], candidate.skill
        other = seed if against == "seed" else parent_of(candidates, candidate)
        difference = changes(candidate, other)
        scores = example_scores(candidate, seed)
        page = fit(scores[offset : offset + limit], SCORES_BYTES)
        return cls(
            skill=shorten_within(skill, SKILL_BYTES),
            lineage=lineage(candidates, candidate),
            diff_to=other.number,
            diff=shorten_within(difference, DIFF_BYTES),
            scores=page,
            scores_total=len(scores),
            scores_next_offset=next_offset(offset, len(page), len(scores)),
        )


def example_scores(candidate: Candidate, seed: Candidate) -> list[ExampleScore]:
    """Where it lost most against the seed first; empty where only the mean is known."""
    rows = [
        ExampleScore(
            trace_id=trace_id,
            score=round(score, 4),
            gain=round(score - seed.scores[trace_id], 4) if trace_id in seed.scores else None,
        )
        for trace_id, score in candidate.scores.items()
    ]
    return sorted(rows, key=lambda row: (row.gain or 0.0, row.score, row.trace_id))


class CandidateList(Result):
    run_id: str
    partial: bool = Field(description="The run was stopped early")
    score_kind: str | None = None
    candidates: tuple[CandidateRow, ...]
    total: int = Field(description="Of those that were asked for")
    next_offset: int | None = None
    text: CandidateText | None = Field(None, description="Of the one that was asked for")
    next: str

    @classmethod
    def page(
        cls,
        run: Run,
        candidates: Sequence[Candidate],
        selected: Sequence[Candidate],
        limit: int,
        offset: int,
    ) -> "CandidateList":
        chosen = selected[offset : offset + limit]
        rows = fit(CandidateRow.of(candidate, candidates) for candidate in chosen)
        return cls(
            run_id=run.id,
            partial=run.partial,
            score_kind="in-sample" if rows else None,
            candidates=rows,
            total=len(selected),
            next_offset=next_offset(offset, len(rows), len(selected)),
            next=_marked(run, _advice(candidates, selected))
            if candidates
            else _without_candidates(run),
        )

    @classmethod
    def one(
        cls,
        run: Run,
        candidates: Sequence[Candidate],
        number: int,
        against: Against,
        limit: int,
        offset: int,
    ) -> "CandidateList":
        candidate = find(candidates, run.id, number)
        text = CandidateText.of(candidate, candidates, against, limit, offset)
        # Nobody should install what they could not read to its end.
        uri = candidate_uri(run.id, number)
        whole = "" if text.skill == candidate.skill else f"The whole text is the resource {uri}. "
        return cls(
            run_id=run.id,
            partial=run.partial,
            score_kind="in-sample",
            candidates=(CandidateRow.of(candidate, candidates),),
            total=len(candidates),
            text=text,
            next=_marked(run, f"{whole}If the person agrees, install_skill(run_id, candidate=N)."),
        )


def _advice(candidates: Sequence[Candidate], selected: Sequence[Candidate]) -> str:
    if not selected:
        return f"None of the {len(candidates)} candidates is like that; ask without a filter."
    return "Read one in full with list_candidates(run_id, candidate=N)."


def _marked(run: Run, advice: str) -> str:
    return f"{PARTIAL} {advice}" if run.partial else advice


def _without_candidates(run: Run) -> str:
    if run.status.is_final:
        return "None was scored before the run ended; get_run has the reason."
    return "None is scored yet: wait with get_run(run_id, wait_seconds=50)."
