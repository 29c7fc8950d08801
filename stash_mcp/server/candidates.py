"""Looking at a run's candidates: in which order, which of them, against what, and whence."""

import difflib
from collections.abc import Sequence
from typing import Literal

from stash_mcp.errors import NotFoundError
from stash_mcp.models import Candidate

Order = Literal["best", "newest", "oldest"]
Against = Literal["seed", "parent"]


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


def select(
    candidates: Sequence[Candidate],
    *,
    order: Order = "best",
    better_only: bool = False,
    contains: str | None = None,
) -> list[Candidate]:
    """Those that are asked for. better_only: with a higher score than the seed, candidate 0.
    contains: a part of the body, in any case of its letters.
    """
    wanted = None if contains is None else contains.casefold()
    kept = [
        candidate
        for candidate in candidates
        if (not better_only or candidate.score > candidates[0].score)
        and (wanted is None or wanted in body_of(candidate.skill).casefold())
    ]
    if order == "best":
        return best_first(kept)
    return sorted(kept, key=lambda row: row.number, reverse=order == "newest")


def parent_of(candidates: Sequence[Candidate], candidate: Candidate) -> Candidate:
    """Its first parent; the seed where it has none, which is the seed's own case too."""
    known = {row.number: row for row in candidates}
    return known.get(candidate.parents[0], candidates[0]) if candidate.parents else candidates[0]


def lineage(candidates: Sequence[Candidate], candidate: Candidate) -> tuple[int, ...]:
    """The numbers from the seed to this one, along the first parents."""
    line = [candidate.number]
    current = candidate
    while current.parents and len(line) <= len(candidates):
        current = parent_of(candidates, current)
        line.append(current.number)
    return tuple(reversed(line))


def changes(candidate: Candidate, other: Candidate) -> str:
    """A unified diff from the other's SKILL.md; empty where they are the same."""
    lines = difflib.unified_diff(
        other.skill.split("\n"),
        candidate.skill.split("\n"),
        fromfile=f"candidate {other.number}",
        tofile=f"candidate {candidate.number}",
        lineterm="",
    )
    return "\n".join(lines)


def telling_line(candidate: Candidate, parent: Candidate) -> str:
    """The first line of its body that its parent has not; the first one where there is none."""
    known = {line.strip() for line in body_of(parent.skill).split("\n")}
    lines = [line.strip() for line in body_of(candidate.skill).split("\n")]
    new = (line for line in lines if line and line not in known and any(map(str.isalnum, line)))
    return next(new, next((line for line in lines if line), ""))


def body_of(skill: str) -> str:
    """What follows the frontmatter, in the one form that a run's skills have. Reading it as YAML
    would load a parser at the server's start for the sake of one line.
    """
    return skill.removeprefix("---\n").partition("\n---\n")[2]
