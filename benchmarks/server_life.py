"""A server's process as the benchmarks need it: greeted, asked, and its end timed."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

OURS = (sys.executable, "-m", "stash_mcp", "serve")
_EMPTY_SERVER = 'from mcp.server import MCPServer\n\nMCPServer("empty").run("stdio")\n'
_PATIENCE_SECONDS = 60.0


def empty_server(folder: Path) -> tuple[str, ...]:
    """The command of a server of the same SDK that offers nothing."""
    program = folder / "empty_server.py"
    program.write_text(_EMPTY_SERVER, encoding="utf-8")
    return (sys.executable, str(program))


class Life:
    """`process` has pipes for its input and output."""

    def __init__(self, command: Sequence[str], home: Path) -> None:
        self.process = subprocess.Popen(
            command,
            env={**os.environ, "STASH_MCP_HOME": str(home)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )

    def initialize(self) -> None:
        client = {"name": "benchmark", "version": "0"}
        params = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client}
        answer = self.ask(1, "initialize", params)
        if "serverInfo" not in answer.get("result", {}):
            raise RuntimeError(f"the server answered initialize with {answer}")
        self.send({"method": "notifications/initialized"})

    def ask(self, number: int, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """The next message that the server sends."""
        self.send({"id": number, "method": method, "params": params})
        return self.receive()

    def send(self, message: dict[str, Any]) -> None:
        if self.process.stdin is None:
            raise RuntimeError("the server was started without pipes")
        self.process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        self.process.stdin.flush()

    def receive(self) -> dict[str, Any]:
        if self.process.stdout is None:
            raise RuntimeError("the server was started without pipes")
        message: dict[str, Any] = json.loads(self.process.stdout.readline() or b"{}")
        return message

    def close_input(self) -> None:
        if self.process.stdin is not None:
            self.process.stdin.close()

    def seconds_to_end(self, leave: Callable[[], object]) -> float:
        began = time.perf_counter()
        leave()
        self.process.wait(_PATIENCE_SECONDS)
        return time.perf_counter() - began


@contextmanager
def life(command: Sequence[str], home: Path) -> Iterator[Life]:
    living = Life(command, home)
    with living.process:
        try:
            yield living
        finally:
            living.process.kill()
