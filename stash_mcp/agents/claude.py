"""Claude Code's servers of user scope.

They are in a large file that the running program rewrites all the time, so that an edit from
outside may be lost or undo one of its own. It is only read here; `claude mcp` changes it.
"""

import json
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from stash_mcp.agents.entries import NAME, Server
from stash_mcp.agents.surroundings import shell_line
from stash_mcp.errors import ConfigFileError

SECONDS = 60.0
_WORDS = 300


def present_entry(path: Path) -> Any:
    """Our entry in that file; None where there is none."""
    try:
        content = json.loads(path.read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, ValueError, RecursionError) as error:
        raise ConfigFileError(
            f"it cannot be read as JSON ({type(error).__name__})", str(path)
        ) from error
    servers = content.get("mcpServers") if isinstance(content, dict) else None
    return servers.get(NAME) if isinstance(servers, dict) else None


def has_plugin(files: Sequence[Path]) -> bool:
    """Whether our plugin, which brings an entry of its own, is enabled in one of these settings.

    Of a file that cannot be read nothing is known.
    """
    return any(_enables_us(path) for path in files)


def _enables_us(path: Path) -> bool:
    try:
        content = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return False
    plugins = content.get("enabledPlugins") if isinstance(content, dict) else None
    named = plugins if isinstance(plugins, dict) else {}
    return any(name.partition("@")[0] == NAME and on is True for name, on in named.items())


def add_arguments(server: Server) -> list[str]:
    # The name comes first: -e takes as many values as follow.
    variables = [part for row in server.environment.items() for part in ("-e", "=".join(row))]
    return ["mcp", "add", "--scope", "user", NAME, *variables, "--", *server.command]


def remove_arguments() -> list[str]:
    return ["mcp", "remove", "--scope", "user", NAME]


def line(arguments: Sequence[str]) -> str:
    """For a shell."""
    return shell_line(["claude", *arguments])


def run(claude: str, arguments: Sequence[str], folder: Path) -> None:
    """Run `claude` with these; ConfigFileError with its words where it fails."""
    said = _said(claude, arguments, folder)
    if said is not None:
        raise ConfigFileError(f"`{line(arguments)}` failed: {said}", "Claude Code's configuration")


def _said(claude: str, arguments: Sequence[str], folder: Path) -> str | None:
    """What it said, if it failed."""
    try:
        done = subprocess.run(
            [claude, *arguments],
            cwd=folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"it took longer than {SECONDS:.0f} s"
    except OSError as error:
        return error.strerror or str(error)
    if done.returncode == 0:
        return None
    words = (done.stderr or done.stdout).decode("utf-8", "replace").strip()
    return words[-_WORDS:].rstrip(".") or f"it ended with {done.returncode}"


def as_text(entry: Mapping[str, Any] | None) -> str:
    """An entry in lines, for a diff."""
    return "" if entry is None else json.dumps({NAME: entry}, indent=2, ensure_ascii=False) + "\n"
