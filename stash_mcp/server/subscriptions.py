"""Telling clients of changes to what they listen to, in both eras of the protocol.

A client of the present protocol opens a stream with `subscriptions/listen`. One of an older
protocol subscribes to addresses, and counts as listening to the list of resources once it has
asked for it. While nobody listens, nothing is looked at.
"""

import contextlib
import logging
import threading
from collections.abc import Callable

import anyio
import anyio.from_thread
import anyio.to_thread
from anyio.lowlevel import EventLoopToken, current_token
from mcp.server.context import HandlerResult, ServerRequestContext
from mcp.server.extension import RequestHandler
from mcp.server.session import ServerSession
from mcp.server.subscriptions import ResourcesListChanged, ResourceUpdated, SubscriptionBus
from mcp.types import SubscriptionsListenRequestParams

from stash_mcp.errors import StashSkillsError
from stash_mcp.server.changes import Changed, Changes, Interest

_SEND_SECONDS = 5.0
_UNREADABLE = "The runs that a client listens to cannot be read: %s"
_Context = ServerRequestContext[object, object]

logger = logging.getLogger(__name__)


class Subscriptions:
    """new_changes: for each time that somebody begins to listen while nobody does. listen: the
    SDK's handler of a stream, fed by `bus`. seconds: between two looks.
    """

    def __init__(
        self,
        new_changes: Callable[[], Changes],
        bus: SubscriptionBus,
        listen: RequestHandler,
        seconds: float,
    ) -> None:
        self._new_changes = new_changes
        self._changes = new_changes()
        self._bus = bus
        self._listen = listen
        self._seconds = seconds
        # By stream, or by connection of an older client; changed on the event loop alone.
        self._interests: dict[object, Interest] = {}
        self._sessions: dict[object, ServerSession] = {}
        self._stop = threading.Event()

    async def stream(
        self, context: _Context, params: SubscriptionsListenRequestParams
    ) -> HandlerResult:
        """Serve one stream; returns when it ends."""
        asked = params.notifications
        uris = frozenset(asked.resource_subscriptions or ())
        key = object()
        try:
            await self._begin(key, Interest(uris, bool(asked.resources_list_changed)))
            return await self._listen(context, params)
        finally:
            self._end(key)

    async def subscribe(
        self, session: ServerSession, *, uri: str | None = None, lists: bool = False
    ) -> None:
        """Of an older client: until it unsubscribes, or its connection closes."""
        # The connection is the session's own; the SDK gives handlers no other way to its end.
        connection = session._connection
        if connection not in self._sessions:
            self._sessions[connection] = session
            connection.exit_stack.callback(self._end, connection)
        new = Interest(frozenset(() if uri is None else (uri,)), lists)
        await self._begin(connection, self._interests.get(connection, Interest()) | new)

    def addresses(self, session: ServerSession) -> frozenset[str]:
        """What an older client is subscribed to."""
        return self._interests.get(session._connection, Interest()).uris

    def unsubscribe(self, session: ServerSession, uri: str) -> None:
        connection = session._connection
        interest = self._interests.get(connection)
        if interest is not None:
            self._interests[connection] = Interest(interest.uris - {uri}, interest.lists)

    async def _begin(self, key: object, interest: Interest) -> None:
        is_first = not self._interests
        self._interests[key] = interest
        if is_first:
            self._stop, self._changes = threading.Event(), self._new_changes()
            watched = (self._changes, self._stop, current_token())
            threading.Thread(
                target=self._watch, args=watched, name="listening", daemon=True
            ).start()
        try:
            await anyio.to_thread.run_sync(self._changes.remember, interest)
        except StashSkillsError as error:
            logger.warning(_UNREADABLE, error)

    def _end(self, key: object) -> None:
        self._sessions.pop(key, None)
        if self._interests.pop(key, None) is not None and not self._interests:
            self._stop.set()

    def _watch(self, changes: Changes, stop: threading.Event, loop: EventLoopToken) -> None:
        """A thread's: a defect met in a look ends the listening and not the server."""
        while not stop.wait(self._seconds):
            try:
                changed = changes.look(self._of_all())
            except StashSkillsError as error:
                logger.warning(_UNREADABLE, error)
                continue
            if changed != Changed() and not stop.is_set():
                with contextlib.suppress(anyio.RunFinishedError):
                    anyio.from_thread.run(self._tell, changed, token=loop)

    def _of_all(self) -> Interest:
        everything = Interest()
        for interest in list(self._interests.values()):
            everything |= interest
        return everything

    async def _tell(self, changed: Changed) -> None:
        for uri in changed.uris:
            await self._bus.publish(ResourceUpdated(uri=uri))
        if changed.lists:
            await self._bus.publish(ResourcesListChanged())
        for key, session in list(self._sessions.items()):
            # A client that has stopped reading must not hold up the others.
            with anyio.move_on_after(_SEND_SECONDS):
                await _tell_session(session, changed, self._interests.get(key, Interest()))


async def _tell_session(session: ServerSession, changed: Changed, interest: Interest) -> None:
    for uri in changed.uris:
        if uri in interest.uris:
            await session.send_resource_updated(uri)
    if changed.lists and interest.lists:
        await session.send_resource_list_changed()
