"""What the tool for candidates returns."""

import difflib
from collections.abc import Sequence

from pydantic import Field

from stash_mcp.errors import NotFoundError
from stash_mcp.models import Candidate, Run
from stash_mcp.server.results import Part, Result
from stash_mcp.server.shortening import characters_within, fit, next_offset, one_line, shorten
from stash_mcp.server.wording import PARTIAL

SKILL_BYTES = 22_000
DIFF_BYTES = 9_000
LINE_CHARACTERS = 160


class CandidateRow(Part):
    candidate: int = Field(description="0 is the seed")
    score: float = Field(description="Mean, 0 to 1")
    gain: float = Field(description="Over the seed")
    parents: tuple[int, ...]
    first_line: str

    @classmethod
    def of(cls, candidate: Candidate, seed: Candidate) -> "CandidateRow":
        return cls(
            candidate=candidate.number,
            score=round(candidate.score, 4),
            gain=round(candidate.score - seed.score, 4),
            parents=candidate.parents,
            first_line=one_line(body_of(candidate.skill), LINE_CHARACTERS),
        )


class CandidateText(Part):
    skill: str = Field(description="The whole SKILL.md")
    diff_to_seed: str = Field(description="Unified diff; empty for the seed")

    @classmethod
    def of(cls, candidate: Candidate, seed: Candidate) -> "CandidateText":
        skill, diff = candidate.skill, diff_to_seed(candidate, seed)
        return cls(
            skill=shorten(skill, characters_within(skill, SKILL_BYTES)),
            diff_to_seed=shorten(diff, characters_within(diff, DIFF_BYTES)),
        )


class CandidateList(Result):
    run_id: str
    partial: bool = Field(description="The run was stopped early")
    candidates: tuple[CandidateRow, ...] = Field(description="Best score first")
    total: int
    next_offset: int | None = None
    text: CandidateText | None = Field(None, description="Of the one that was asked for")
    next: str

    @classmethod
    def page(
        cls, run: Run, candidates: Sequence[Candidate], limit: int, offset: int
    ) -> "CandidateList":
        chosen = best_first(candidates)[offset : offset + limit]
        rows = fit(CandidateRow.of(candidate, candidates[0]) for candidate in chosen)
        return cls(
            run_id=run.id,
            partial=run.partial,
            candidates=rows,
            total=len(candidates),
            next_offset=next_offset(offset, len(rows), len(candidates)),
            next=_marked(run, "Read one in full with list_candidates(run_id, candidate=N).")
            if candidates
            else _without_candidates(run),
        )

    @classmethod
    def one(cls, run: Run, candidates: Sequence[Candidate], number: int) -> "CandidateList":
        candidate = find(candidates, run.id, number)
        return cls(
            run_id=run.id,
            partial=run.partial,
            candidates=(CandidateRow.of(candidate, candidates[0]),),
            total=len(candidates),
            text=CandidateText.of(candidate, candidates[0]),
            next=_marked(run, "If the person agrees, install_skill(run_id, candidate=N)."),
        )


def _marked(run: Run, advice: str) -> str:
    return f"{PARTIAL} {advice}" if run.partial else advice


def _without_candidates(run: Run) -> str:
    if run.status.is_final:
        return "None was scored before the run ended; get_run has the reason."
    return "None is scored yet: wait with get_run(run_id, wait_seconds=50)."


def find(candidates: Sequence[Candidate], run_id: str, number: int) -> Candidate:
    """The candidate with this number; raises NotFoundError with the numbers there are."""
    for candidate in candidates:
        if candidate.number == number:
            return candidate
    known = f"It has 0 to {candidates[-1].number}." if candidates else "None is scored yet."
    raise NotFoundError(f"The run '{run_id}' has no candidate {number}. {known}", "Name another.")


def best_first(candidates: Sequence[Candidate]) -> list[Candidate]:
    """By falling score; of equals the older one, as the run itself prefers it."""
    return sorted(candidates, key=lambda candidate: (-candidate.score, candidate.number))


def diff_to_seed(candidate: Candidate, seed: Candidate) -> str:
    """A unified diff of the two SKILL.md; empty where they are the same."""
    lines = difflib.unified_diff(
        seed.skill.split("\n"),
        candidate.skill.split("\n"),
        fromfile=f"candidate {seed.number}",
        tofile=f"candidate {candidate.number}",
        lineterm="",
    )
    return "\n".join(lines)


def body_of(skill: str) -> str:
    """What follows the frontmatter, in the one form that a run's skills have. Reading it as YAML
    would load a parser at the server's start for the sake of one line.
    """
    return skill.removeprefix("---\n").partition("\n---\n")[2]
