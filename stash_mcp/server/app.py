"""The server that a client meets: it answers at once, and builds what it offers after that.

What is imported here is what a client waits for at the start. The tools, resources and prompts
are in `contents.py`, which is imported when one of them is first asked for.
"""

import logging
import threading
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import anyio.lowlevel
import anyio.to_thread
from mcp.server import MCPServer
from mcp.server.extension import Extension
from mcp.server.lowlevel.helper_types import ReadResourceContents
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ResourceNotFoundError, ToolError
from mcp.shared.exceptions import MCPError
from mcp.types import (
    INVALID_PARAMS,
    CallToolResult,
    GetPromptResult,
    InputRequiredResult,
    Prompt,
    Resource,
    ResourceTemplate,
    TextContent,
    Tool,
)
from pydantic.networks import AnyUrl

from stash_mcp import __version__
from stash_mcp.errors import StashSkillsError
from stash_mcp.server.addresses import check_length
from stash_mcp.server.opening import LazyBackend, Once
from stash_mcp.server.refusals import (
    refusal,
    unknown_address,
    unknown_arguments,
    unknown_prompt,
)
from stash_mcp.server.requests import Requests
from stash_mcp.server.tasks_extension import TasksExtension

if TYPE_CHECKING:
    from stash_mcp.backends.base import Backend
    from stash_mcp.models import Notice
    from stash_mcp.server.offerings import Offerings

logger = logging.getLogger(__name__)

NAME = "stash-skills"
POLL_SECONDS = 0.25
LISTEN_SECONDS = 2.0
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
reflection_model "builtin/comments" needs no key and is a baseline; "agent" none either: you \
write the skill when get_run says so (get_reflection, submit_reflection); a strong model writes \
better skills. backend="stash" does the work at the hosted Stash instead, whose things have ids \
like stash:ID; its numbers are in-sample. sync_with_stash exchanges conversations with it. doctor \
says what is missing here. In a shell: stash-skills --help."""


class SkillServer(MCPServer[Any]):
    """The server that is connected. It declares tools, resources and prompts, and asks `contents`
    for them: an MCPServer that is built when one is first needed, in a thread.

    Refused and failed tool calls say what to do next, and answers carry the news of the watcher.

    prepare: called in a thread once the contents are built; makes the first tool call faster.
    """

    def __init__(
        self,
        contents: Callable[[], MCPServer[Any]],
        take_notices: Callable[[], "list[Notice]"],
        prepare: Callable[[], object],
        extensions: Sequence[Extension] = (),
    ) -> None:
        super().__init__(
            NAME,
            title="Stash skills",
            version=__version__,
            instructions=INSTRUCTIONS,
            log_level="WARNING",
            extensions=extensions,
        )
        self.contents = Once(contents)
        self._take_notices = take_notices
        self._untold: list[str] = []
        self._prepare = prepare

    async def _contents(self) -> MCPServer[Any]:
        """Built in a thread, so that the event loop goes on."""
        made = self.contents.made
        if made is None:
            made = await anyio.to_thread.run_sync(self.contents)
            threading.Thread(target=self._prepare, name="preparing", daemon=True).start()
        return made

    async def list_tools(self) -> list[Tool]:
        return await (await self._contents()).list_tools()

    async def call_tool(
        self, name: str, arguments: dict[str, Any], context: Context[Any, Any] | None = None
    ) -> CallToolResult | InputRequiredResult:
        contents = await self._contents()
        try:
            _refuse_unknown(await contents.list_tools(), name, arguments)
            answer = await contents.call_tool(name, _given(arguments), context)
        except (ToolError, StashSkillsError) as error:
            return refusal(name, error)
        return await self._with_notices(answer)

    async def list_resources(self) -> list[Resource]:
        return await (await self._contents()).list_resources()

    async def list_resource_templates(self) -> list[ResourceTemplate]:
        return await (await self._contents()).list_resource_templates()

    async def read_resource(
        self, uri: AnyUrl | str, context: Context[Any, Any] | None = None
    ) -> Iterable[ReadResourceContents] | InputRequiredResult:
        check_length(str(uri))
        contents = await self._contents()
        try:
            return await contents.read_resource(uri, context)
        except ResourceNotFoundError as error:
            if error.__cause__ is not None:
                raise
            known = [row.uri_template for row in await contents.list_resource_templates()]
            raise ResourceNotFoundError(unknown_address(str(uri), known)) from error

    async def list_prompts(self) -> list[Prompt]:
        return await (await self._contents()).list_prompts()

    async def get_prompt(
        self,
        name: str,
        arguments: dict[str, Any] | None = None,
        context: Context[Any, Any] | None = None,
    ) -> GetPromptResult | InputRequiredResult:
        contents = await self._contents()
        known = {prompt.name: prompt for prompt in await contents.list_prompts()}
        # The SDK's answer to either is an internal error.
        refused = unknown_prompt(known, name, set(arguments or {}))
        if refused is not None:
            raise MCPError(INVALID_PARAMS, refused)
        return await contents.get_prompt(name, arguments, context)

    def _tool_input_schema(self, name: str) -> dict[str, Any] | None:
        # The SDK asks its own list of tools, which is empty here, when it checks HTTP headers.
        return self.contents()._tool_input_schema(name)

    async def _with_notices(
        self, answer: CallToolResult | InputRequiredResult
    ) -> CallToolResult | InputRequiredResult:
        """The answer and what the watcher did since the last one, as text and structured."""
        if not isinstance(answer, CallToolResult) or answer.is_error:
            return answer
        said = await self._news()
        if not said:
            return answer
        content = [*answer.content, *(TextContent(type="text", text=note) for note in said)]
        structured = {**(answer.structured_content or {}), "notices": said}
        return answer.model_copy(update={"content": content, "structured_content": structured})

    async def _news(self) -> list[str]:
        """What the watcher did and no answer has told. The answer that it goes into is finished:
        news that cannot be had do not change it.
        """
        try:
            # A notice is given out once: a call that is cancelled now must not lose it.
            with anyio.CancelScope(shield=True):
                taken = await anyio.to_thread.run_sync(self._take_notices)
        except Exception as error:  # noqa: BLE001 - the call has been made, and has its answer
            logger.warning("What the watcher did cannot be told: %s", error)
            taken = []
        self._untold += [notice.note for notice in taken]
        await anyio.lowlevel.checkpoint_if_cancelled()
        said, self._untold = self._untold, []
        return said


def _given(arguments: dict[str, Any]) -> dict[str, Any]:
    """Clients send null for what a model has left out."""
    return {name: value for name, value in arguments.items() if value is not None}


def _refuse_unknown(tools: list[Tool], name: str, arguments: dict[str, Any]) -> None:
    for tool in tools:
        if tool.name == name:
            known = list(tool.input_schema.get("properties", {}))
            error = unknown_arguments(name, set(arguments), known)
            if error is not None:
                raise error


def _now() -> datetime:
    return datetime.now(UTC)


def build_server(
    open_backend: "Callable[[], Backend]",
    project_dir: Path,
    *,
    clock: Callable[[], datetime] = _now,
    poll_seconds: float = POLL_SECONDS,
    listen_seconds: float = LISTEN_SECONDS,
    prepare: Callable[[], object] = lambda: None,
    has_library: Callable[[], bool] = lambda: True,
) -> SkillServer:
    """The server over the backend that `open_backend` gives, called at the first tool call.

    project_dir: where relative paths start. poll_seconds: how often get_run looks for news;
    listen_seconds: how often it is looked for clients that listen. prepare: called in a thread
    after the first list or call. has_library: False where only the opening would make one.
    """
    backend = LazyBackend(open_backend)

    def library() -> "Backend | None":
        return backend() if backend.made is not None or has_library() else None

    def offer() -> "Offerings":
        from stash_mcp.server.offerings import Offerings

        return Offerings(backend, library, clock)

    offerings = Once(offer)

    def contents() -> MCPServer[Any]:
        # Imported at the first list or call: it would lengthen what a client waits for.
        from stash_mcp.server.contents import build_contents

        made = build_contents(backend, project_dir, clock, poll_seconds)
        offerings().add_to(made)
        return made

    tasks = TasksExtension(library)
    server = SkillServer(contents, lambda: backend().take_notices(), prepare, [tasks])
    Requests(server, offerings, library, listen_seconds).register()
    return server
