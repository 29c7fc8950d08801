"""What is offered beside the tools, put together: resources, prompts, completion, skills."""

from collections.abc import Callable
from datetime import datetime
from typing import Any

from mcp.server import MCPServer
from mcp.types import (
    CompleteRequestParams,
    CompleteResult,
    ListResourcesResult,
    ResourceTemplateReference,
)

from stash_mcp.backends.base import Backend
from stash_mcp.server.catalogue import Catalogue
from stash_mcp.server.completion import Completions
from stash_mcp.server.offered_skills import OfferedSkills
from stash_mcp.server.opening import LazyBackend
from stash_mcp.server.prompts import add_prompts
from stash_mcp.server.resources import Resources
from stash_mcp.server.skills_extension import (
    GetSkillResult,
    ListSkillsResult,
    ReadDirectoryResult,
    get_skill,
    list_skills,
    read_directory,
)


class Offerings:
    """library: the backend; None as long as there is no library, which listing does not make."""

    def __init__(
        self,
        backend: LazyBackend,
        library: Callable[[], Backend | None],
        clock: Callable[[], datetime],
    ) -> None:
        self._skills = OfferedSkills(library)
        self._catalogue = Catalogue(library, self._skills)
        self._completions = Completions(library, self._skills)
        self._resources = Resources(backend, self._skills, clock)

    def page(self, cursor: str | None) -> ListResourcesResult:
        """Blocking, like all the others."""
        return self._catalogue.page(cursor)

    def complete(self, params: CompleteRequestParams) -> CompleteResult:
        ref = params.ref
        named = ref.uri if isinstance(ref, ResourceTemplateReference) else ref.name
        found = self._completions.complete(named, params.argument, params.context)
        return CompleteResult(completion=found)

    def list_skills(self, cursor: str | None) -> ListSkillsResult:
        return list_skills(self._skills, cursor)

    def get_skill(self, uri: str) -> GetSkillResult:
        return get_skill(self._skills, uri)

    def read_directory(self, uri: str, cursor: str | None) -> ReadDirectoryResult:
        return read_directory(self._skills, uri, cursor)

    def add_to(self, server: MCPServer[Any]) -> None:
        self._resources.add_to(server)
        add_prompts(server)
