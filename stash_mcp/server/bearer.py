"""Who may use the HTTP server: whoever sends its token with each request."""

import hmac

from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

_REALM = 'Bearer realm="stash-skills"'
_MISSING = "This server asks for its token: send the header 'Authorization: Bearer TOKEN'."
_WRONG = "That is not this server's token. It said at its start where the token is kept."


class BearerGuard:
    """Answers 401 to every HTTP request without the token, whatever its path."""

    def __init__(self, app: ASGIApp, token: str) -> None:
        self._app = app
        self._token = token.encode("ascii")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        given = _bearer(Headers(scope=scope).get("authorization", ""))
        if given is not None and hmac.compare_digest(given, self._token):
            await self._app(scope, receive, send)
            return
        await _refuse(was_given=given is not None)(scope, receive, send)


def _bearer(header: str) -> bytes | None:
    scheme, _, token = header.partition(" ")
    # Headers come as Latin-1, so this cannot fail.
    return token.strip().encode("latin-1") if scheme.lower() == "bearer" else None


def _refuse(*, was_given: bool) -> JSONResponse:
    challenge = f'{_REALM}, error="invalid_token"' if was_given else _REALM
    return JSONResponse(
        {
            "error": "invalid_token" if was_given else "no_token",
            "message": _WRONG if was_given else _MISSING,
        },
        status_code=401,
        headers={"WWW-Authenticate": challenge},
    )
