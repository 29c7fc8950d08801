"""Serving over streamable HTTP, in both eras of the protocol, to several clients at once."""

import asyncio
import contextlib
import gc
import secrets
import socket
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

import uvicorn
from mcp.server import MCPServer
from mcp.server.transport_security import TransportSecuritySettings
from starlette.types import ASGIApp

from stash_mcp.backends.both import open_backends
from stash_mcp.server.admission import Admission
from stash_mcp.server.app import build_server
from stash_mcp.server.bearer import BearerGuard
from stash_mcp.server.http_token import Token, token_of
from stash_mcp.server.leaving import leave
from stash_mcp.server.listening import PATH, HttpOptions, listen
from stash_mcp.server.opening import LazyBackend
from stash_mcp.server.watching import watch_in_background
from stash_mcp.settings import Settings


@dataclass(frozen=True)
class HttpServer:
    """A server whose socket takes connections already; `run` answers them.

    token: None where none is asked for.
    """

    app: ASGIApp
    listener: socket.socket
    options: HttpOptions
    token: Token | None
    start_watcher: Callable[[], object]

    @property
    def url(self) -> str:
        return self.options.url(int(self.listener.getsockname()[1]))

    def run(self) -> NoReturn:
        """Serve until the process ends; see `leave_on_signals`."""
        self.start_watcher()
        # A full collection stops every thread, for some 70 ms with all that is loaded; what is
        # there by now stays, and need not be looked through again.
        gc.collect()
        gc.freeze()
        asyncio.run(serve_app(self.app, self.listener, self.options))
        leave()


def open_server(settings: Settings, options: HttpOptions, given_token: str | None) -> HttpServer:
    """Everything that can be refused is refused here.

    given_token: instead of the one that is kept in a file of ours.
    """
    listener = listen(options)
    try:
        token = None
        if options.asks_for_token:
            path = settings.http_token_path
            token = token_of(given_token, path, lambda: secrets.token_urlsafe(32))
    except BaseException:
        listener.close()
        raise
    backend = LazyBackend(lambda: open_backends(settings))
    has_library = settings.library_path.exists
    server = build_server(backend, settings.project_dir, has_library=has_library)
    # Nobody waits for the start of this server, and later it would hold up the event loop.
    server.contents()
    return HttpServer(
        app=http_app(server, options.known_names, None if token is None else token.value),
        listener=listener,
        options=options,
        token=token,
        start_watcher=lambda: watch_in_background(backend, settings.home),
    )


def http_app(server: MCPServer[Any], names: Sequence[str], token: str | None) -> ASGIApp:
    """names: what the Host header and the Origin's host may be, with any port: behind a forwarded
    port it is not ours. A web page that had a name of its own point here has another one.
    """
    origins = [f"{scheme}://{name}" for scheme in ("http", "https") for name in names]
    inner = server.streamable_http_app(
        streamable_http_path=PATH,
        transport_security=TransportSecuritySettings(
            allowed_hosts=[*names, *_any_port(names)],
            allowed_origins=[*origins, *_any_port(origins)],
        ),
    )
    app = Admission(inner, names)
    return app if token is None else BearerGuard(app, token)


def _any_port(names: Sequence[str]) -> list[str]:
    return [f"{name}:*" for name in names]


async def serve_app(app: ASGIApp, listener: socket.socket, options: HttpOptions) -> None:
    config = uvicorn.Config(
        app,
        # Uvicorn's own would write to standard output.
        log_config=None,
        log_level="warning",
        access_log=False,
        lifespan="on",
        ws="none",
        proxy_headers=False,
        server_header=False,
        ssl_certfile=options.tls_cert,
        ssl_keyfile=options.tls_key,
    )
    await _Uvicorn(config).serve(sockets=[listener])


class _Uvicorn(uvicorn.Server):
    """Leaves the signals to us: it would wait for the requests in progress."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield
