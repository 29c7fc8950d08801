"""The skills that the server offers for reading: those that ship with it, and those that its runs
have made.

Of the runs' skills: the best candidate of each run that has succeeded, whose verdict does not deny
a gain, and in whose text the scan finds nothing high, because a host may load what is offered. Of
several runs for one skill the newest counts. A shipped skill keeps its name.
"""

from collections.abc import Callable, Iterator
from functools import lru_cache

from stash_mcp.backends.base import Backend
from stash_mcp.errors import NotFoundError, SkillDocumentError
from stash_mcp.models import JobStatus, Run
from stash_mcp.server.wording import is_no_gain
from stash_mcp.skills.scan import find_active
from stash_mcp.skills.shipped import SkillFile, SkillFolder, folder_of, shipped_skills

MOST_MADE = 100
"""Of the runs' skills, how many are offered at most; the newest ones."""


class OfferedSkills:
    """library: None as long as there is none; then only the shipped skills are offered."""

    def __init__(self, library: Callable[[], Backend | None]) -> None:
        self._library = library

    def all(self) -> tuple[SkillFolder, ...]:
        """Blocking; the shipped ones first, then the newest."""
        shipped = shipped_skills()
        backend = self._library()
        if backend is None:
            return shipped
        return (*shipped, *_made(backend, {skill.name for skill in shipped}))

    def find(self, name: str) -> SkillFolder:
        """Raises NotFoundError with the names that there are."""
        skills = self.all()
        for skill in skills:
            if skill.name == name:
                return skill
        names = ", ".join(skill.name for skill in skills)
        raise NotFoundError(f"No skill '{name}' is offered.", f"There are: {names}.")

    def file(self, name: str, path: str) -> SkillFile:
        skill = self.find(name)
        file = skill.file(path)
        if file is None:
            paths = ", ".join(row.path for row in skill.files)
            raise NotFoundError(f"The skill '{name}' has no file '{path}'.", f"It has: {paths}.")
        return file


def _made(backend: Backend, taken: set[str]) -> Iterator[SkillFolder]:
    found = 0
    for run in backend.known_runs():
        if found == MOST_MADE:
            return
        skill = None if run.skill_name in taken else _best(backend, run)
        if skill is not None:
            found += 1
            taken.add(skill.name)
            yield skill


def _best(backend: Backend, run: Run) -> SkillFolder | None:
    """The run's best skill if it may be offered."""
    if run.status is not JobStatus.SUCCEEDED or not run.best_candidate or is_no_gain(run.verdict):
        return None
    for candidate in backend.list_candidates(run.id):
        if candidate.number == run.best_candidate:
            return _harmless(candidate.skill)
    return None


@lru_cache(maxsize=2 * MOST_MADE)
def _harmless(text: str) -> SkillFolder | None:
    """The skill of this SKILL.md; None where the scan objects, or where it is none by our rules."""
    if any(finding.severity == "high" for finding in find_active(text)):
        return None
    try:
        return folder_of(text)
    except SkillDocumentError:
        return None
