"""The list of what can be read, in pages: offered skills, installed skills, the latest reports."""

from collections.abc import Callable, Iterator, Sequence

from mcp.shared.exceptions import MCPError
from mcp.types import INVALID_PARAMS, Annotations, ListResourcesResult, Resource

from stash_mcp.backends.base import Backend
from stash_mcp.models import Run
from stash_mcp.server import resource_uris as uris
from stash_mcp.server.offered_skills import OfferedSkills
from stash_mcp.server.shortening import fit, next_offset
from stash_mcp.skills.shipped import SKILL_FILE, SkillFile, SkillFolder

REPORTS_LISTED = 50
INSTALLED_LISTED = 100
PAGE_ROWS = 50


class Catalogue:
    """library: None as long as there is none; listing does not make one."""

    def __init__(self, library: Callable[[], Backend | None], skills: OfferedSkills) -> None:
        self._library = library
        self._skills = skills

    def all(self) -> list[Resource]:
        """Blocking. Bounded: older reports and everything else are reached by templates."""
        rows = [skill_file(skill, skill.files[0]) for skill in self._skills.all()]
        backend = self._library()
        if backend is not None:
            rows += _installed(backend)
            rows += [_report(run) for run in backend.known_runs()[:REPORTS_LISTED]]
        return rows

    def page(self, cursor: str | None) -> ListResourcesResult:
        rows, following = page_of(self.all(), cursor)
        return ListResourcesResult(resources=rows, next_cursor=following)


def page_of(rows: Sequence[Resource], cursor: str | None) -> tuple[list[Resource], str | None]:
    """The rows from `cursor` on that fit into an answer, and the next cursor."""
    offset = offset_of(cursor)
    page = fit(rows[offset : offset + PAGE_ROWS])
    following = next_offset(offset, len(page), len(rows))
    return list(page), None if following is None else str(following)


def offset_of(cursor: str | None) -> int:
    """Raises the protocol's error for a cursor that is none of ours."""
    if cursor is None:
        return 0
    if not (cursor.isdecimal() and cursor.isascii() and len(cursor) < 10):
        raise MCPError(
            INVALID_PARAMS, "This cursor is not one of this server. Start without a cursor."
        )
    return int(cursor)


def skill_file(skill: SkillFolder, file: SkillFile) -> Resource:
    """A file of an offered skill; SKILL.md under the skill's own name and description."""
    is_skill = file.path == SKILL_FILE
    return Resource(
        uri=uris.skill_uri(skill.name, file.path),
        name=skill.name if is_skill else file.path.rpartition("/")[2],
        description=skill.description if is_skill else None,
        mime_type=uris.MARKDOWN,
        size=len(file.content),
    )


def _installed(backend: Backend) -> Iterator[Resource]:
    there = [row for row in backend.list_installed_skills() if row.state != "uninstalled"]
    places: dict[str, list[str]] = {}
    for row in there:
        places.setdefault(row.installation.name, []).append(row.installation.agent)
    for name, agents in list(places.items())[-INSTALLED_LISTED:]:
        yield Resource(
            uri=uris.installed_text_uri(name),
            name=name,
            title=f"Installed skill: {name}",
            description=f"As it stands on disk, for {', '.join(dict.fromkeys(agents))}.",
            mime_type=uris.MARKDOWN,
        )


def _report(run: Run) -> Resource:
    verdict = (run.verdict or "").partition(":")[0].rstrip(".")
    said = f" {verdict}." if verdict else ""
    return Resource(
        uri=uris.report_uri(run.id),
        name=f"report-{run.id}",
        title=f"Report of {run.id}: {run.skill_name or 'no name yet'}",
        description=f"{run.status.capitalize()}.{said}",
        mime_type=uris.MARKDOWN,
        annotations=Annotations(last_modified=(run.finished_at or run.created_at).isoformat()),
    )
