"""The server: its tools put together, and its refusals in words."""

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import anyio.to_thread
from mcp.server import MCPServer
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import CallToolResult, InputRequiredResult, TextContent

from stash_mcp import __version__
from stash_mcp.backends.base import Backend
from stash_mcp.errors import StashSkillsError
from stash_mcp.models import Notice
from stash_mcp.server.installed_tools import InstalledTools
from stash_mcp.server.opening import LazyBackend
from stash_mcp.server.refusals import refusal, unknown_arguments
from stash_mcp.server.run_tools import RunTools
from stash_mcp.server.skill_tools import SkillTools
from stash_mcp.server.trace_tools import TraceTools
from stash_mcp.server.training_tools import TrainingTools

NAME = "stash-skills"
POLL_SECONDS = 0.25
INSTRUCTIONS = """\
Turns reviewers' comments on agent conversations into a skill (SKILL.md) that an agent loads, \
optimised with GEPA against a reward model trained on those reviews. The loop:

1. import_traces: bring conversations in, from a file (JSONL) or as text.
2. get_trace, annotate_trace: read a conversation with the person and record their ratings and \
comments, on the step that they are about. Both good and bad ones are needed.
3. train_reward_model: answers with an id at once.
4. get_run(run_id=<that id>, wait_seconds=50): until it has succeeded. It tells how many held-out \
pairs the model ranks right; near 0.5 it has learned nothing, and more ratings are needed.
5. start_gepa_run(reward_model_id, task_model): answers with the plan at once. Show the person \
what it will spend.
6. get_run(run_id, wait_seconds=50): until the run is over. Repeat its verdict as it is; where it \
says that there is no improvement, say so.
7. list_candidates(run_id), then with candidate=N: read the skill before it is installed.
8. install_skill(run_id): only when the person agrees. Tell them what `visibility` says. \
Later: list_installed_skills, rollback_skill, uninstall_skill.

Trainings and runs go on in a process of their own when this session ends; list_runs and \
list_reward_models find them again. cancel_run stops one and keeps what a run has scored; \
resume_run carries on a failed or cancelled run. What was paid for is not paid again. \
reflection_model "builtin/comments" needs no key and is a baseline; a strong model writes better \
skills. The same is there in a shell: stash-skills --help."""


class SkillServer(MCPServer[Any]):
    """An MCP server whose refused and failed tool calls say what to do next, and whose answers
    carry the news of the watcher.
    """

    take_notices: Callable[[], list[Notice]]

    async def call_tool(
        self, name: str, arguments: dict[str, Any], context: Context[Any, Any] | None = None
    ) -> CallToolResult | InputRequiredResult:
        try:
            await self._refuse_unknown(name, arguments)
            answer = await super().call_tool(name, arguments, context)
            return await self._with_notices(answer)
        except (ToolError, StashSkillsError) as error:
            return refusal(name, error)

    async def _with_notices(
        self, answer: CallToolResult | InputRequiredResult
    ) -> CallToolResult | InputRequiredResult:
        """The answer and what the watcher did since the last one, as text and structured."""
        if not isinstance(answer, CallToolResult) or answer.is_error:
            return answer
        said = [notice.note for notice in await anyio.to_thread.run_sync(self.take_notices)]
        if not said:
            return answer
        content = [*answer.content, *(TextContent(type="text", text=note) for note in said)]
        structured = {**(answer.structured_content or {}), "notices": said}
        return answer.model_copy(update={"content": content, "structured_content": structured})

    async def _refuse_unknown(self, name: str, arguments: dict[str, Any]) -> None:
        for tool in await self.list_tools():
            if tool.name == name:
                known = list(tool.input_schema.get("properties", {}))
                error = unknown_arguments(name, set(arguments), known)
                if error is not None:
                    raise error


def _now() -> datetime:
    return datetime.now(UTC)


def build_server(
    open_backend: Callable[[], Backend],
    project_dir: Path,
    *,
    clock: Callable[[], datetime] = _now,
    poll_seconds: float = POLL_SECONDS,
) -> SkillServer:
    """The server over the backend that `open_backend` gives, called at the first tool call.

    project_dir: where relative paths start. poll_seconds: how often get_run looks for news.
    """
    backend = LazyBackend(open_backend)
    groups = (
        TraceTools(backend, project_dir),
        TrainingTools(backend),
        RunTools(backend, clock, poll_seconds),
        SkillTools(backend),
        InstalledTools(backend),
    )
    server = SkillServer(
        NAME,
        title="Stash skills",
        version=__version__,
        instructions=INSTRUCTIONS,
        tools=[tool for group in groups for tool in group.tools()],
        log_level="WARNING",
    )
    server.take_notices = lambda: backend().take_notices()
    return server
