"""Tools for reading a run's candidates and installing one."""

from typing import Annotated

from mcp.server.mcpserver.tools import Tool
from pydantic import Field

from stash_mcp.backends.base import InstallOrder, Scope
from stash_mcp.server.opening import LazyBackend
from stash_mcp.server.parameters import (
    AtLeast0,
    Limit,
    Offset,
    RunId,
    make_tool,
)
from stash_mcp.server.skill_results import CandidateList, InstallResult


class SkillTools:
    def __init__(self, backend: LazyBackend) -> None:
        self._backend = backend

    def tools(self) -> list[Tool]:
        return [
            make_tool(self.list_candidates, "Read a run's candidates", reads_only=True),
            make_tool(self.install_skill, "Install a skill", replaces=True, idempotent=True),
        ]

    def list_candidates(
        self,
        run_id: RunId,
        candidate: Annotated[
            AtLeast0 | None,
            Field(
                description="Show this one in full, with its diff to the seed",
            ),
        ] = None,
        limit: Limit = 20,
        offset: Offset = 0,
    ) -> CandidateList:
        """Use this to compare the skills that a run has proposed, and to read one before it is
        installed.

        Best score first, with the gain over the seed (candidate 0). These scores are of the
        conversations that were optimised on; get_run has the held-out ones. Works while the run
        goes on, and after it was cancelled (partial: true). With candidate=N: the whole SKILL.md.
        """
        backend = self._backend()
        run, candidates = backend.get_run(run_id), backend.list_candidates(run_id)
        if candidate is not None:
            return CandidateList.one(run, candidates, candidate)
        return CandidateList.page(run, candidates, limit, offset)

    def install_skill(
        self,
        run_id: RunId,
        candidate: Annotated[
            AtLeast0 | None,
            Field(
                description="Default: the best one",
            ),
        ] = None,
        scope: Annotated[
            Scope, Field(description="For this project, or for all of the user's")
        ] = "project",
        force: Annotated[
            bool, Field(description="Replace what a person made or edited, after a backup of it")
        ] = False,
    ) -> InstallResult:
        """Use this when the person has seen a candidate and wants it: writes its SKILL.md into
        Claude Code's skills folder.

        A file that this tool did not write, or that was edited since, is not touched; the answer
        then shows the difference. Set force only if the person says so.
        """
        order = InstallOrder(run_id=run_id, candidate=candidate, scope=scope, force=force)
        backend = self._backend()
        run = backend.get_run(run_id)
        return InstallResult.of(backend.install_skill(order), run)
