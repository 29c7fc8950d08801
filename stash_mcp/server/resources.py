"""What can be read by its address: runs, reports, candidates, conversations, skills.

Each is a template; a result fits into 10,000 tokens, but for the files of offered skills, which
are given byte for byte, and a candidate's text, which is whole. Reading blocks, and the SDK calls
these functions in threads.
"""

from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import ResourceError, ResourceNotFoundError
from mcp.server.mcpserver.resources import ResourceSecurity

from stash_mcp.backends.base import Backend
from stash_mcp.backends.installations import InstalledSkill
from stash_mcp.errors import NotFoundError, StashError, StashSkillsError
from stash_mcp.models import RewardModel
from stash_mcp.server import resource_uris as uris
from stash_mcp.server.candidates import find
from stash_mcp.server.installed_results import InstalledList
from stash_mcp.server.job_results import JobState
from stash_mcp.server.jobs import find_job
from stash_mcp.server.offered_skills import OfferedSkills
from stash_mcp.server.opening import LazyBackend
from stash_mcp.server.refusals import in_words
from stash_mcp.server.report import report
from stash_mcp.server.shortening import shorten_within
from stash_mcp.server.skill_results import SKILL_BYTES
from stash_mcp.server.trace_text import trace_text

# Ids are looked up and never become paths.
_NOT_PATHS = ResourceSecurity(
    reject_path_traversal=False, reject_absolute_paths=False, reject_null_bytes=False
)
_MOST_PLACES = 50


class Resources:
    def __init__(
        self, backend: LazyBackend, skills: OfferedSkills, clock: Callable[[], datetime]
    ) -> None:
        self._backend = backend
        self._skills = skills
        self._clock = clock

    def add_to(self, server: MCPServer[Any]) -> None:
        def add(uri: str, name: str, title: str, mime_type: str, read: Callable[..., str]) -> None:
            server.resource(
                uri,
                name=name,
                title=title,
                description=read.__doc__,
                mime_type=mime_type,
                security=_NOT_PATHS,
            )(read)

        add(uris.RUN, "run", "A run's state", uris.JSON, self.run)
        add(uris.REPORT, "report", "A run's report", uris.MARKDOWN, self.report)
        add(uris.CANDIDATE, "candidate", "A candidate's SKILL.md", uris.MARKDOWN, self.candidate)
        add(uris.TRACE, "conversation", "A conversation", uris.MARKDOWN, self.trace)
        add(uris.INSTALLED, "installed-skill", "An installed skill", uris.JSON, self.installed)
        add(
            uris.INSTALLED_TEXT,
            "installed-skill-text",
            "An installed SKILL.md",
            uris.MARKDOWN,
            self.installed_text,
        )
        add(uris.SKILL_PATH, "skill-file", "A skill's file", uris.MARKDOWN, self.skill_file)

    def run(self, run_id: str) -> str:
        """Where a run or a training stands, as get_run tells it. Can be subscribed to."""
        return _read(lambda: self._state(run_id))

    def report(self, run_id: str) -> str:
        """A run in one page: verdict, numbers, candidates, spend, diff from seed to best."""
        return _read(lambda: self._report(run_id))

    def candidate(self, run_id: str, candidate: str) -> str:
        """One candidate's whole SKILL.md; candidate 0 is the seed."""
        return _read(lambda: self._candidate(run_id, candidate))

    def trace(self, trace_id: str) -> str:
        """One conversation with its step numbers and what reviewers said of it."""
        return _read(lambda: trace_text(self._backend().get_trace(trace_id)))

    def installed(self, skill: str) -> str:
        """Where a skill is installed, how its files stand, and where it came from."""
        return _read(lambda: self._installed(skill))

    def installed_text(self, skill: str) -> str:
        """The SKILL.md as it stands on disk; of several places the one installed last."""
        return _read(lambda: _text_on_disk(skill, self._places(skill)))

    def skill_file(self, skill: str, path: str) -> str:
        """A file of a skill that ships with this server, or that a run of it has made."""
        return _read(lambda: self._skills.file(skill, path).content.decode())

    def _state(self, job_id: str) -> str:
        backend = self._backend()
        job = find_job(backend, job_id)
        events = backend.events(job_id)
        last = events[-1].number if events else 0
        return JobState.of(job, events, last, self._clock()).model_dump_json(indent=2)

    def _report(self, run_id: str) -> str:
        backend = self._backend()
        run = backend.get_run(run_id)
        judge = _judge(backend, run.request.reward_model_id)
        return report(run, backend.list_candidates(run_id), judge, self._clock())

    def _candidate(self, run_id: str, candidate: str) -> str:
        candidates = self._backend().list_candidates(run_id)
        number = int(candidate) if candidate.isdecimal() and len(candidate) < 10 else -1
        if number < 0:
            raise NotFoundError(
                f"'{candidate}' is no number of a candidate.", "They count from 0, the seed."
            )
        return find(candidates, run_id, number).skill

    def _installed(self, skill: str) -> str:
        return InstalledList.page(self._places(skill), _MOST_PLACES, 0).model_dump_json(indent=2)

    def _places(self, skill: str) -> list[InstalledSkill]:
        skills = self._backend().list_installed_skills()
        places = [row for row in skills if row.installation.name == skill]
        if not places:
            names = sorted({row.installation.name for row in skills})
            raise NotFoundError(
                f"No skill '{skill}' was installed by stash-skills.",
                f"Installed are: {', '.join(names) or 'none'} (list_installed_skills).",
            )
        return places


def _read(read: Callable[[], str]) -> str:
    """What `read` gives; what it refuses as the protocol says it, in words."""
    try:
        return read()
    except NotFoundError as error:
        raise ResourceNotFoundError(in_words(error)) from error
    except StashSkillsError as error:
        raise ResourceError(in_words(error)) from error


def _judge(backend: Backend, reward_model_id: str) -> RewardModel | None:
    try:
        return backend.get_reward_model(reward_model_id)
    except (NotFoundError, StashError):
        return None


def _text_on_disk(skill: str, places: list[InstalledSkill]) -> str:
    latest_first = sorted(places, key=lambda row: row.installation.installed_at, reverse=True)
    for row in latest_first:
        if row.state in ("missing", "uninstalled", "unreadable"):
            continue
        try:
            text = Path(row.installation.path).read_text("utf-8", errors="replace")
        except OSError:
            # It was there a moment ago.
            continue
        return shorten_within(text, SKILL_BYTES)
    raise NotFoundError(
        f"The file of the skill '{skill}' is gone from every place it was installed in.",
        f'rollback_skill(skill="{skill}") brings it back.',
    )
