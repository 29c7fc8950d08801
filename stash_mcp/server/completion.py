"""Completion of ids while a person or a client types: by their beginning, the newest first."""

from collections.abc import Callable, Iterable, Mapping

from mcp.types import Completion, CompletionArgument, CompletionContext

from stash_mcp.backends.base import Backend
from stash_mcp.errors import NotFoundError
from stash_mcp.models import AGENT_REFLECTION, BUILTIN_REFLECTION
from stash_mcp.server.offered_skills import OfferedSkills

MOST_VALUES = 100
"""The protocol's limit."""
_TRACES_READ = 1000


class Completions:
    """By the argument's name alone: templates and prompts name the same things alike.

    library: None as long as there is none; completing does not make one.
    """

    def __init__(self, library: Callable[[], Backend | None], skills: OfferedSkills) -> None:
        self._library = library
        self._skills = skills

    def complete(
        self, reference: str, argument: CompletionArgument, context: CompletionContext | None
    ) -> Completion:
        """Blocking. reference: the template's address or the prompt's name."""
        known = (context.arguments if context else None) or {}
        if reference.startswith("skill://"):
            return _starting(argument.value, self._offered(argument.name, known))
        backend = self._library()
        if backend is None:
            return _starting(argument.value, ())
        if argument.name in ("trace_id", "traces"):
            return _traces(backend, argument.value)
        return _starting(argument.value, _values(backend, argument.name, known))

    def _offered(self, name: str, known: Mapping[str, str]) -> list[str]:
        skills = self._skills.all()
        if name == "skill":
            return [skill.name for skill in skills]
        named = [skill for skill in skills if skill.name == known.get("skill")]
        return [file.path for skill in named for file in skill.files]


def _values(backend: Backend, name: str, known: Mapping[str, str]) -> Iterable[str]:
    match name:
        case "run_id":
            return (run.id for run in backend.known_runs())
        case "candidate":
            return _candidates(backend, known.get("run_id", ""))
        case "skill":
            return (row.installation.name for row in reversed(backend.list_installed_skills()))
        case "task_model":
            return (run.request.task_model for run in backend.known_runs())
        case "reflection_model":
            used = (run.request.reflection_model for run in backend.known_runs())
            return (BUILTIN_REFLECTION, AGENT_REFLECTION, *used)
        case _:
            return ()


def _candidates(backend: Backend, run_id: str) -> list[str]:
    try:
        return [str(row.number) for row in backend.list_candidates(run_id)]
    except NotFoundError:
        return []


def _traces(backend: Backend, beginning: str) -> Completion:
    """Those of this machine, in order of import. The library finds the text anywhere in an id or a
    title, so beyond what is read the total is not known.
    """
    here = backend.at("local")
    page = here.list_traces(limit=_TRACES_READ, offset=0, text=beginning or None)
    found = _starting(beginning, (row.id for row in page.traces))
    if page.total <= _TRACES_READ:
        return found
    return Completion(values=found.values, has_more=True)


def _starting(beginning: str, values: Iterable[str]) -> Completion:
    """The values with this beginning, in either case, each once."""
    folded = beginning.casefold()
    found = [value for value in dict.fromkeys(values) if value.casefold().startswith(folded)]
    return Completion(
        values=found[:MOST_VALUES], total=len(found), has_more=len(found) > MOST_VALUES
    )
