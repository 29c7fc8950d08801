"""A server as a client starts it: a process of its own, spoken to line by line."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
COMMAND = (sys.executable, "-m", "stash_mcp", "serve")


class ServerProcess:
    """In a process group of its own where there are groups; `lines` is all that it has written to
    standard output and that was read.
    """

    def __init__(self, environment: Mapping[str, str], command: Sequence[str] = COMMAND) -> None:
        self.lines: list[bytes] = []
        self.process = subprocess.Popen(
            command,
            env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=sys.platform != "win32",
        )

    def send(self, method: str, params: Mapping[str, Any], number: int | None) -> None:
        """number: of a request; None for a notification."""
        message: dict[str, Any] = {"jsonrpc": "2.0", "method": method, "params": params}
        if number is not None:
            message["id"] = number
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()

    def receive(self) -> dict[str, Any]:
        """The next line, which has to be a message."""
        assert self.process.stdout is not None
        self.lines.append(self.process.stdout.readline())
        message: dict[str, Any] = json.loads(self.lines[-1])
        return message

    def initialize(self) -> dict[str, Any]:
        client = {"name": "test", "version": "0"}
        version = "2025-06-18"
        params = {"protocolVersion": version, "capabilities": {}, "clientInfo": client}
        self.send("initialize", params, 1)
        answer = self.receive()
        self.send("notifications/initialized", {}, None)
        return answer

    def start_call(self, number: int, tool: str, **arguments: object) -> None:
        self.send("tools/call", {"name": tool, "arguments": arguments}, number)

    def call(self, number: int, tool: str, **arguments: object) -> dict[str, Any]:
        """The result; nothing else may come before it."""
        self.start_call(number, tool, **arguments)
        answer = self.receive()
        assert answer["id"] == number
        result: dict[str, Any] = answer["result"]
        return result

    def close_input(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()

    def rest(self) -> tuple[bytes, bytes]:
        """What is left of standard output, and all of standard error, once it has ended."""
        assert self.process.stdout is not None
        assert self.process.stderr is not None
        return self.process.stdout.read(), self.process.stderr.read()
