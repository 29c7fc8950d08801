"""Our server, as the command starts it, over a library that has something to show."""

import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from benchmarks.filled_library import fill
from stash_mcp.backends.local import open_local_backend
from stash_mcp.settings import Settings

SERVE = (sys.executable, "-m", "stash_mcp", "serve")
_TRACES, _RUNS = 6, 2
_START_SECONDS = 60.0
_END_SECONDS = 10.0
_URL = re.compile(r"Serving MCP at (http\S+/mcp)\.")


class ServerError(Exception):
    """The server did not start; with what it said."""


@contextmanager
def filled_library() -> Iterator[dict[str, str]]:
    """The environment of a command that uses a library of reviewed conversations and runs."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as root:
        settings = Settings(
            home=Path(root, "home"),
            project_dir=Path(root, "project"),
            claude_config_dir=Path(root, "claude"),
            user_home=Path(root, "user"),
        )
        settings.project_dir.mkdir()
        backend = open_local_backend(settings, start_worker=lambda _settings: False)
        fill(backend, settings, _TRACES, _RUNS)
        yield {
            "STASH_MCP_HOME": str(settings.home),
            "CLAUDE_PROJECT_DIR": str(settings.project_dir),
            "CLAUDE_CONFIG_DIR": str(settings.claude_config_dir),
        }


@contextmanager
def http_server(
    environment: Mapping[str, str], command: Sequence[str] = SERVE, seconds: float = _START_SECONDS
) -> Iterator[str]:
    """The URL of one on a free port of this machine; it ends with the block."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        log = Path(folder, "log")
        with log.open("wb") as said:
            process = subprocess.Popen(
                [*command, "--http", "--no-auth", "--port", "0"],
                env=whole(environment),
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=said,
            )
        try:
            yield _url(process, log, seconds)
        finally:
            _end(process)


def whole(environment: Mapping[str, str]) -> dict[str, str]:
    """With the rest of this process's, but for what would lead to another library or service."""
    ours = {name: value for name, value in os.environ.items() if not name.startswith("STASH_")}
    return {**ours, **environment}


def _url(process: "subprocess.Popen[bytes]", log: Path, seconds: float) -> str:
    deadline = time.monotonic() + seconds
    while True:
        has_ended = process.poll() is not None
        said = log.read_text(encoding="utf-8", errors="replace")
        found = _URL.search(said)
        if found:
            return found[1]
        if has_ended or time.monotonic() > deadline:
            raise ServerError(f"The server did not start:\n{said}")
        time.sleep(0.05)


def _end(process: "subprocess.Popen[bytes]") -> None:
    process.terminate()
    try:
        process.wait(_END_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
