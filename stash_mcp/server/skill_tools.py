"""The tool for reading a run's candidates."""

from typing import Annotated

from mcp.server.mcpserver.tools import Tool
from pydantic import Field

from stash_mcp.server.candidates import Against, Order, select
from stash_mcp.server.opening import LazyBackend
from stash_mcp.server.parameters import (
    AtLeast0,
    Limit,
    Offset,
    RunId,
    given,
    make_tool,
)
from stash_mcp.server.skill_results import CandidateList


class SkillTools:
    def __init__(self, backend: LazyBackend) -> None:
        self._backend = backend

    def tools(self) -> list[Tool]:
        return [
            make_tool(
                self.list_candidates, "Read a run's candidates", reads_only=True, calls_models=True
            ),
        ]

    def list_candidates(
        self,
        run_id: RunId,
        candidate: Annotated[
            AtLeast0 | None,
            Field(
                description="Show this one in full: text, diff, lineage, score by conversation",
            ),
        ] = None,
        diff_to: Annotated[Against, Field(description="What its diff starts from")] = "seed",
        sort: Annotated[Order, Field(description="What comes first")] = "best",
        better_only: Annotated[bool, Field(description="Than the seed")] = False,
        contains: Annotated[str, Field(description="Text in the body")] = "",
        limit: Limit = 20,
        offset: Offset = 0,
    ) -> CandidateList:
        """Use this to compare the skills that a run has proposed, and to read one before it is
        installed.

        Best score first, with the gain over the seed (candidate 0). These are in-sample; get_run
        has held-out ones. Works while the run goes on, and after it was cancelled (partial: true).
        With candidate=N limit and offset page its scores by conversation.
        """
        backend = self._backend()
        run, candidates = backend.get_run(run_id), backend.list_candidates(run_id)
        if candidate is not None:
            return CandidateList.one(run, candidates, candidate, diff_to, limit, offset)
        selected = select(candidates, order=sort, better_only=better_only, contains=given(contains))
        return CandidateList.page(run, candidates, selected, limit, offset)
