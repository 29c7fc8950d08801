"""Requests that the SDK does not serve by itself, or not as they are wanted here: pages of
resources, completion, listening for changes, Skills over MCP.

Registering them costs a client nothing at the start: what answers is imported at the first use.
"""

import functools
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import anyio.to_thread
from mcp.server import MCPServer
from mcp.server.context import HandlerResult, ServerRequestContext
from mcp.server.lowlevel import NotificationOptions
from mcp.server.mcpserver import require_client_extension
from mcp.shared.exceptions import MCPError
from mcp.types import (
    INTERNAL_ERROR,
    CompleteRequestParams,
    EmptyResult,
    PaginatedRequestParams,
    RequestParams,
    SubscribeRequestParams,
    SubscriptionsListenRequestParams,
    UnsubscribeRequestParams,
)
from mcp.types.version import MODERN_PROTOCOL_VERSIONS

from stash_mcp.errors import StashSkillsError
from stash_mcp.server.addresses import check_known, check_length, check_number
from stash_mcp.server.opening import Once
from stash_mcp.server.refusals import in_words

if TYPE_CHECKING:
    from stash_mcp.backends.base import Backend
    from stash_mcp.server.offerings import Offerings
    from stash_mcp.server.subscriptions import Subscriptions

SKILLS_EXTENSION = "io.modelcontextprotocol/skills"
TASKS_EXTENSION = "io.modelcontextprotocol/tasks"

T = TypeVar("T")
_Context = ServerRequestContext[Any, Any]


class SkillParams(RequestParams):
    uri: str


class DirectoryParams(PaginatedRequestParams):
    uri: str


class Requests:
    """listen_seconds: between two looks at what a client listens to."""

    def __init__(
        self,
        server: MCPServer[Any],
        offerings: "Once[Offerings]",
        library: "Callable[[], Backend | None]",
        listen_seconds: float,
    ) -> None:
        self._server = server
        self._offerings = offerings
        self._library = library
        self._listen_seconds = listen_seconds
        self._subscriptions = Once(self._new_subscriptions)

    def register(self) -> None:
        # MCPServer has no way to page resources or to take older clients' subscriptions; the
        # server below it has.
        server = self._server._lowlevel_server
        listen = server.get_request_handler("subscriptions/listen")
        assert listen is not None
        self._listen = listen.handler
        add = server.add_request_handler
        add("resources/list", PaginatedRequestParams, self._list_resources)
        add("completion/complete", CompleteRequestParams, self._complete)
        add("resources/subscribe", SubscribeRequestParams, self._subscribe)
        add("resources/unsubscribe", UnsubscribeRequestParams, self._unsubscribe)
        add("subscriptions/listen", SubscriptionsListenRequestParams, self._stream)
        add("skills/list", PaginatedRequestParams, self._list_skills)
        add("skills/get", SkillParams, self._get_skill)
        add("resources/directory/read", DirectoryParams, self._read_directory)
        server.extensions[SKILLS_EXTENSION] = {"directoryRead": True}
        # Older clients are told when the list changes; the SDK asks for this where it is run.
        server.create_initialization_options = functools.partial(  # type: ignore[method-assign]
            server.create_initialization_options,
            notification_options=NotificationOptions(resources_changed=True),
        )

    # --- resources and completion ---

    async def _list_resources(
        self, context: _Context, params: PaginatedRequestParams
    ) -> HandlerResult:
        if context.protocol_version not in MODERN_PROTOCOL_VERSIONS:
            await (await in_thread(self._subscriptions)).subscribe(context.session, lists=True)
        return await in_thread(lambda: self._offerings().page(params.cursor))

    async def _complete(self, _context: _Context, params: CompleteRequestParams) -> HandlerResult:
        return await in_thread(lambda: self._offerings().complete(params))

    # --- listening ---

    async def _subscribe(self, context: _Context, params: SubscribeRequestParams) -> HandlerResult:
        subscriptions = await in_thread(self._subscriptions)
        check_number(subscriptions.addresses(context.session) | {params.uri})
        await in_thread(lambda: check_known(self._library, params.uri))
        await subscriptions.subscribe(context.session, uri=params.uri)
        return EmptyResult()

    async def _unsubscribe(
        self, context: _Context, params: UnsubscribeRequestParams
    ) -> HandlerResult:
        (await in_thread(self._subscriptions)).unsubscribe(context.session, params.uri)
        return EmptyResult()

    async def _stream(
        self, context: _Context, params: SubscriptionsListenRequestParams
    ) -> HandlerResult:
        asked = params.notifications.resource_subscriptions or []
        check_number(asked)
        for uri in asked:
            check_length(uri)
        if "taskIds" in (params.notifications.model_extra or {}):
            require_client_extension(context, TASKS_EXTENSION)
        return await (await in_thread(self._subscriptions)).stream(context, params)

    def _new_subscriptions(self) -> "Subscriptions":
        from stash_mcp.server.changes import Changes
        from stash_mcp.server.subscriptions import Subscriptions

        return Subscriptions(
            lambda: Changes(self._library, time.monotonic),
            self._server._subscriptions,
            self._listen,
            self._listen_seconds,
        )

    # --- Skills over MCP ---

    async def _list_skills(
        self, _context: _Context, params: PaginatedRequestParams
    ) -> HandlerResult:
        return await in_thread(lambda: self._offerings().list_skills(params.cursor))

    async def _get_skill(self, _context: _Context, params: SkillParams) -> HandlerResult:
        check_length(params.uri)
        return await in_thread(lambda: self._offerings().get_skill(params.uri))

    async def _read_directory(self, _context: _Context, params: DirectoryParams) -> HandlerResult:
        check_length(params.uri)
        return await in_thread(lambda: self._offerings().read_directory(params.uri, params.cursor))


async def in_thread(work: Callable[[], T]) -> T:
    """What `work` returns; what it refuses as the protocol's error, in words."""
    try:
        return await anyio.to_thread.run_sync(work)
    except StashSkillsError as error:
        raise MCPError(INTERNAL_ERROR, in_words(error)) from error
