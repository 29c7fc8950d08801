"""The tool for what goes between the library and Stash."""

from collections.abc import Callable
from typing import Annotated, Literal

from mcp.server.mcpserver.tools import Tool
from pydantic import Field

from stash_mcp.backends.base import StartedRun
from stash_mcp.backends.hybrid import Rescore, SyncReport, open_hybrid, rescore
from stash_mcp.errors import InputError
from stash_mcp.server.opening import LazyBackend
from stash_mcp.server.parameters import TraceIds, given, make_tool
from stash_mcp.server.results import Result
from stash_mcp.server.shortening import shorten
from stash_mcp.server.sync_wording import held_in_words, sync_in_words
from stash_mcp.settings import Settings

HELD_SHOWN = 20
_HELD_CHARACTERS = 300


class SyncResult(Result):
    in_words: str
    held: tuple[str, ...] = Field(description="Conversations left as they are, and why")
    reward_model_id: str | None = None
    run_id: str | None = None

    @classmethod
    def of(cls, report: SyncReport) -> "SyncResult":
        held = (*report.conflicts, *report.refused)
        return cls(
            in_words=" ".join(sync_in_words(report)),
            held=tuple(shorten(held_in_words(row), _HELD_CHARACTERS) for row in held[:HELD_SHOWN]),
            reward_model_id=report.reward_model_id,
        )

    @classmethod
    def measuring(cls, started: StartedRun) -> "SyncResult":
        run = started.run
        words = f'Seed and best are measured here; wait with get_run(run_id="{run.id}").'
        return cls(
            in_words=" ".join((*started.warnings, words)),
            held=(),
            reward_model_id=run.request.reward_model_id,
            run_id=run.id,
        )


class SyncTool:
    """settings: read anew for each call, as the environment is the server's."""

    def __init__(self, backend: LazyBackend, settings: Callable[[], Settings]) -> None:
        self._backend = backend
        self._settings = settings

    def tools(self) -> list[Tool]:
        return [make_tool(self.sync_with_stash, "Exchange with Stash", calls_models=True)]

    def sync_with_stash(
        self,
        action: Annotated[Literal["pull", "push", "rescore"], Field(description="See above")],
        trace_ids: TraceIds = (),
        id: Annotated[
            str, Field(description="pull: a reward model, with its conversations. rescore: the run")
        ] = "",
        task_model: Annotated[str, Field(description="For rescore; default: the run's")] = "",
        task_api_base: Annotated[str, Field(description="Where it answers")] = "",
        dry_run: Annotated[bool, Field(description="Count, and change nothing")] = False,
    ) -> SyncResult:
        """Use this to bring conversations, comments or a reward model of Stash here (pull), to send
        those of the library there (push: only when the person agrees, it uploads them), or to
        measure a run of Stash honestly on this machine (rescore).

        All that is new or changed, without trace_ids. What changed on both sides stays as it is.
        After a failure call it again: it carries on.
        """
        with open_hybrid(self._settings()) as hybrid:
            if action == "push":
                return SyncResult.of(hybrid.push(trace_ids or None, dry_run=dry_run))
            if action == "pull":
                model = given(id)
                return SyncResult.of(
                    hybrid.pull(trace_ids or None, reward_model=model, dry_run=dry_run)
                )
            if given(id) is None or dry_run:
                raise InputError("rescore needs the id of a run.", "Give id, and no dry_run.")
            asked = Rescore(id, task_model.strip(), given(task_api_base))
            return SyncResult.measuring(rescore(hybrid, self._backend(), asked))
