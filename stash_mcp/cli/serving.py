"""`serve` and `version`."""

import platform
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from stash_mcp import __version__
from stash_mcp.cli.printing import print_json, print_raw, print_text
from stash_mcp.cli.session import Json, Session, session_of
from stash_mcp.errors import InputError
from stash_mcp.server.leaving import leave_on_signals
from stash_mcp.server.listening import DEFAULT_HOST, DEFAULT_PORT, HttpOptions
from stash_mcp.server.logs import log_plainly
from stash_mcp.settings import http_token

if TYPE_CHECKING:
    from stash_mcp.server.http import HttpServer


def register(app: typer.Typer) -> None:
    app.command("serve")(serve)
    app.command("version")(version)


def serve(
    context: typer.Context,
    http: Annotated[
        bool, typer.Option("--http", help="Over streamable HTTP, for several clients at once.")
    ] = False,
    host: Annotated[
        str, typer.Option(help="Address to listen on; others than this machine's own need TLS.")
    ] = DEFAULT_HOST,
    port: Annotated[int, typer.Option(min=0, max=65535, help="0: any free one.")] = DEFAULT_PORT,
    name: Annotated[
        list[str] | None,
        typer.Option(help="Another name that clients use for this server. May be given again."),
    ] = None,
    no_auth: Annotated[
        bool, typer.Option("--no-auth", help="Ask for no token; only on this machine.")
    ] = False,
    tls_cert: Annotated[
        Path | None, typer.Option(metavar="FILE", help="PEM certificate, to serve HTTPS.")
    ] = None,
    tls_key: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Its key, if that is another file.")
    ] = None,
    allow_remote_plain_http: Annotated[
        bool,
        typer.Option("--allow-remote-plain-http", help="Listen on any address without TLS."),
    ] = False,
) -> None:
    """Serve the tools over MCP: on standard input and output, for an agent to start; or with
    --http, for agents to connect to.

    The HTTP server asks for a token, which is made once and kept in a file, or taken from
    STASH_MCP_TOKEN.
    """
    options = HttpOptions(
        host=host,
        port=port,
        asks_for_token=not no_auth,
        tls_cert=tls_cert,
        tls_key=tls_key,
        plain_http_anywhere=allow_remote_plain_http,
        names=tuple(name or ()),
    )
    if http:
        _serve_http(session_of(context), options)
    if options != HttpOptions():
        raise InputError("These options belong to the HTTP server.", "Add --http.")
    # Here and not above: the other commands do without the server's libraries.
    from stash_mcp.server.stdio import serve as serve_on_stdio

    serve_on_stdio()


def _serve_http(session: Session, options: HttpOptions) -> None:
    leave_on_signals()
    log_plainly()
    from stash_mcp.server.http import open_server

    server = open_server(session.settings, options, http_token())
    for line in _introduction(server, session.settings.project_dir):
        # Not wrapped: one of them is a command to be copied.
        print_raw(session.err, line)
    session.err.file.flush()
    server.run()


def _introduction(server: "HttpServer", project_dir: Path) -> list[str]:
    """What to know of it, without the token."""
    add = f"claude mcp add --transport http stash-skills {server.url}"
    lines = [
        f"Serving MCP at {server.url}. Ctrl-C ends it; runs and trainings go on.",
        f"Relative paths, and skills for the project, go to {project_dir}.",
    ]
    if server.token is None:
        lines.append("It asks for no token: whoever has an account on this machine can use it.")
    elif server.token.path is None:
        lines.append("Its token is the one in STASH_MCP_TOKEN.")
        add += f' --header "Authorization: Bearer {_variable("STASH_MCP_TOKEN")}"'
    else:
        lines.append(f"Its token is in {server.token.path}, which only you can read.")
        add += f' --header "Authorization: Bearer {_content_of(server.token.path)}"'
    return [*lines, "For Claude Code:", f"  {add}"]


def _variable(name: str) -> str:
    """As the shell of the platform fills it in, PowerShell on Windows."""
    return f"$env:{name}" if sys.platform == "win32" else f"${name}"


def _content_of(path: Path) -> str:
    if sys.platform == "win32":
        quoted = str(path).replace("'", "''")
        return f"$(Get-Content '{quoted}')"
    return f"$(cat {shlex.quote(str(path))})"


def version(context: typer.Context, as_json: Json = False) -> None:
    """Show the version, and where the data is kept."""
    session = session_of(context)
    facts = {
        "version": __version__,
        "python": platform.python_version(),
        "home": str(session.settings.home),
    }
    if as_json:
        print_json(session.out, facts)
        return
    print_text(session.out, f"stash-skills {facts['version']} (Python {facts['python']})")
    print_text(session.out, f"Data: {facts['home']}")
