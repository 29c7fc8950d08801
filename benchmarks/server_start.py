"""How long a client waits for the server, and for its end, beside an empty server of the SDK.

Both are whole processes: from the spawn to the answer to `initialize`, and from the end of
standard input to the end of the process.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from benchmarks.benchmark import Benchmark, Row
from benchmarks.timing import compared, interleaved, seconds

TARGET = 1.15

_EMPTY_SERVER = 'from mcp.server import MCPServer\n\nMCPServer("empty").run("stdio")\n'
_INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "benchmark", "version": "0"},
    },
}
_PATIENCE_SECONDS = 60.0


@dataclass(frozen=True)
class Size:
    repetitions: int


@dataclass(frozen=True)
class _Life:
    """Seconds from the spawn to the answer, and from the end of the input to the end."""

    start: float
    stop: float


def run(size: Size) -> list[Row]:
    with tempfile.TemporaryDirectory() as folder:
        empty = Path(folder, "empty_server.py")
        empty.write_text(_EMPTY_SERVER, encoding="utf-8")
        ours = [sys.executable, "-m", "stash_mcp", "serve"]
        reference = [sys.executable, str(empty)]
        home = Path(folder, "home")
        # Once each before it counts: the first start compiles, and fills the disk's cache.
        interleaved(lambda: _life(ours, home), lambda: _life(reference, home), 1)
        lives = interleaved(
            lambda: _life(ours, home), lambda: _life(reference, home), size.repetitions
        )
    return [
        compared(
            f"from spawn to initialize (target: {TARGET})",
            [(one.start, other.start) for one, other in lives],
            seconds,
        ),
        compared(
            "from the end of its input to its end",
            [(one.stop, other.stop) for one, other in lives],
            seconds,
        ),
    ]


def _life(command: list[str], home: Path) -> _Life:
    began = time.perf_counter()
    with subprocess.Popen(
        command,
        env={**os.environ, "STASH_MCP_HOME": str(home)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as process:
        try:
            _initialize(process)
            answered = time.perf_counter()
            if process.stdin is not None:
                process.stdin.close()
            process.wait(_PATIENCE_SECONDS)
            return _Life(answered - began, time.perf_counter() - answered)
        finally:
            process.kill()


def _initialize(process: "subprocess.Popen[bytes]") -> None:
    if process.stdin is None or process.stdout is None:
        raise RuntimeError("the server was started without pipes")
    process.stdin.write(json.dumps(_INITIALIZE).encode() + b"\n")
    process.stdin.flush()
    answer = process.stdout.readline()
    if b"serverInfo" not in answer:
        raise RuntimeError(f"the server answered initialize with {answer[:200]!r}")


BENCHMARK = Benchmark(run, smallest=Size(1), quick=Size(3), full=Size(11))
