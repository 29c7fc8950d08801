"""Runs and trainings as tasks (SEP-2663) for a client that declares the extension: the call that
starts one answers with a handle, and the client wakes its agent with the result.

A task is a job of the library and its id is the job's, so nothing is held here: any server, also
the next one, answers for it. A task is never expired. Clients of older protocols, for which the
extension is not defined, and those that do not declare it, get the plain answer. Not served:
notifications of a task's state.
"""

import contextlib
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal

from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.extension import Extension, MethodBinding
from mcp.server.mcpserver import require_client_extension
from mcp.shared.exceptions import MCPError
from mcp.shared.inbound import MCP_NAME_HEADER, decode_header_value
from mcp.types import (
    HEADER_MISMATCH,
    INVALID_PARAMS,
    CallToolRequestParams,
    CallToolResult,
    RequestParams,
    Result,
)
from mcp.types.version import MODERN_PROTOCOL_VERSIONS

from stash_mcp.errors import NotFoundError
from stash_mcp.server.refusals import NAME_CHARACTERS
from stash_mcp.server.requests import TASKS_EXTENSION, in_thread
from stash_mcp.server.shortening import one_line

if TYPE_CHECKING:
    from stash_mcp.backends.base import Backend

STARTING_TOOLS = frozenset({"start_gepa_run", "train_reward_model"})

_Context = ServerRequestContext[Any, Any]


class TaskParams(RequestParams):
    task_id: str


class TaskUpdateParams(TaskParams):
    input_responses: dict[str, Any]


class Acknowledged(Result):
    result_type: Literal["complete"] = "complete"


class TasksExtension(Extension):
    """library: the backend; None as long as there is no library."""

    identifier = TASKS_EXTENSION

    def __init__(self, library: "Callable[[], Backend | None]") -> None:
        self._library = library

    def methods(self) -> Sequence[MethodBinding]:
        modern = frozenset(MODERN_PROTOCOL_VERSIONS)
        return (
            MethodBinding("tasks/get", TaskParams, self._get, modern),
            MethodBinding("tasks/update", TaskUpdateParams, self._update, modern),
            MethodBinding("tasks/cancel", TaskParams, self._cancel, modern),
        )

    async def intercept_tool_call(
        self, params: CallToolRequestParams, ctx: _Context, call_next: CallNext
    ) -> HandlerResult:
        answer = await call_next(ctx)
        if params.name not in STARTING_TOOLS or not _declared(ctx):
            return answer
        if not isinstance(answer, CallToolResult) or answer.is_error:
            return answer
        from stash_mcp.server.tasks import handle

        return await in_thread(lambda: handle(self._found, answer)) or answer

    async def _get(self, context: _Context, params: TaskParams) -> HandlerResult:
        _check(context, params.task_id)
        from stash_mcp.server.tasks import state

        return await in_thread(lambda: state(self._found(params.task_id), params.task_id))

    async def _cancel(self, context: _Context, params: TaskParams) -> HandlerResult:
        _check(context, params.task_id)
        from stash_mcp.server.jobs import stop

        await in_thread(lambda: stop(self._found(params.task_id), params.task_id))
        return Acknowledged()

    async def _update(self, context: _Context, params: TaskUpdateParams) -> HandlerResult:
        """Nothing is ever asked of a client this way, so what it answers is ignored."""
        _check(context, params.task_id)
        await in_thread(lambda: self._found(params.task_id))
        return Acknowledged()

    def _found(self, task_id: str) -> "Backend":
        """The backend, after checking that it has this job."""
        from stash_mcp.server.jobs import find_job

        backend = self._library()
        if backend is not None:
            with contextlib.suppress(NotFoundError):
                find_job(backend, task_id)
                return backend
        raise MCPError(INVALID_PARAMS, f"There is no task '{one_line(task_id, NAME_CHARACTERS)}'.")


def _declared(context: _Context) -> bool:
    if context.protocol_version not in MODERN_PROTOCOL_VERSIONS:
        return False
    capabilities = context.session.client_capabilities
    return capabilities is not None and TASKS_EXTENSION in (capabilities.extensions or {})


def _check(context: _Context, task_id: str) -> None:
    """The SDK checks the Mcp-Name header of the protocol's own methods alone."""
    require_client_extension(context, TASKS_EXTENSION)
    headers = getattr(context.request, "headers", None)
    if headers is not None and decode_header_value(headers.get(MCP_NAME_HEADER)) != task_id:
        raise MCPError(
            HEADER_MISMATCH, f"The {MCP_NAME_HEADER} header is not the request's taskId."
        )
