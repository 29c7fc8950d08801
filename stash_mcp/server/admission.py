"""Which HTTP requests are let in: under a name of ours, of a page of ours, whole and not too large.

The SDK checks the names too, but takes any text behind their colon for a port.
"""

import re
from collections.abc import Sequence

from mcp.server.transport_security import DEFAULT_MAX_REQUEST_BODY_SIZE
from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

MOST_BYTES = DEFAULT_MAX_REQUEST_BODY_SIZE
_PORT = re.compile(r":[0-9]{1,5}\Z")
_TOO_LARGE = (
    f"A request has at most {MOST_BYTES // 1024**2} MiB. Conversations in a larger file: "
    "import_traces(path=...), where path is a file on the server's machine; or in parts."
)


class Admission:
    """names: as in `http_app`."""

    def __init__(self, app: ASGIApp, names: Sequence[str]) -> None:
        self._app = app
        self._hosts = frozenset(names)
        self._origins = frozenset(
            f"{scheme}://{name}" for scheme in ("http", "https") for name in names
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        refusal = self._refusal(Headers(scope=scope))
        if refusal is not None:
            await refusal(scope, receive, send)
            return
        body = await _body(receive)
        if body is None:
            # The client has gone; there is nobody to answer.
            return
        if len(body) > MOST_BYTES:
            await PlainTextResponse(_TOO_LARGE, 413)(scope, receive, send)
            return
        await self._app(scope, _replayed(body, receive), send)

    def _refusal(self, headers: Headers) -> Response | None:
        host, origin = headers.get("host", ""), headers.get("origin", "")
        if _PORT.sub("", host) not in self._hosts:
            return PlainTextResponse("This server has another name: Invalid Host header.", 421)
        if origin and _PORT.sub("", origin) not in self._origins:
            return PlainTextResponse("That page is not of this server: Invalid Origin header.", 403)
        declared = headers.get("content-length", "")
        if declared.isdecimal() and int(declared[:20]) > MOST_BYTES:
            return PlainTextResponse(_TOO_LARGE, 413)
        return None


async def _body(receive: Receive) -> bytes | None:
    """All of it, or what shows that it is too large; None where the client went before its end."""
    body = bytearray()
    while len(body) <= MOST_BYTES:
        message = await receive()
        if message["type"] != "http.request":
            return None
        body.extend(message.get("body", b""))
        if not message.get("more_body", False):
            break
    return bytes(body)


def _replayed(body: bytes, receive: Receive) -> Receive:
    first: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def replay() -> Message:
        return first.pop() if first else await receive()

    return replay
