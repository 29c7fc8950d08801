"""`serve` and `version`."""

import platform

import typer

from stash_mcp import __version__
from stash_mcp.cli.printing import print_json, print_text
from stash_mcp.cli.session import Json, session_of


def register(app: typer.Typer) -> None:
    app.command("serve")(serve)
    app.command("version")(version)


def serve() -> None:
    """Serve the tools over MCP on standard input and output, for an agent to start."""
    # Here and not above: the other commands do without the server's libraries.
    from stash_mcp.server.stdio import serve as serve_on_stdio

    serve_on_stdio()


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
