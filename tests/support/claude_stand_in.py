"""An executable that answers as `claude --print --output-format json` does, as it is told.

It writes what it was given (arguments, standard input, the system prompt, its folder, a part of
its environment) as a line of JSON to the file that STAND_IN_LOG names, and answers as the JSON in
STAND_IN_ANSWER says: fields of the result, and `exit`, `raw`, `stderr`, `hang` or `leaves` (a child
that keeps standard output open) for the rest.
"""

import json
import os
import subprocess
import sys
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SHOWN = ("ANTHROPIC_BASE_URL", "ANTHROPIC_API_KEY", "CLAUDECODE", "MAX_THINKING_TOKENS")


@dataclass(frozen=True)
class StandIn:
    path: str
    environ: dict[str, str]
    log: Path

    def requests(self) -> list[dict[str, Any]]:
        if not self.log.exists():
            return []
        return [json.loads(line) for line in self.log.read_text(encoding="utf-8").splitlines()]


def stand_in(folder: Path, **answer: object) -> StandIn:
    """An executable named `claude` in `folder`, and the environment in which it answers so."""
    log = folder / "requests.jsonl"
    environ = {
        **{name: os.environ[name] for name in ("PATH", "SYSTEMROOT") if name in os.environ},
        "STAND_IN_LOG": os.fspath(log),
        "STAND_IN_ANSWER": json.dumps(answer),
    }
    return StandIn(_executable(folder), environ, log)


def _executable(folder: Path) -> str:
    if os.name == "nt":
        path = folder / "claude.cmd"
        path.write_text(f'@"{sys.executable}" "{__file__}" %*\r\n', encoding="utf-8")
    else:
        path = folder / "claude"
        path.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{__file__}" "$@"\n', encoding="utf-8")
        path.chmod(0o755)
    return os.fspath(path)


def _main(arguments: list[str]) -> int:
    answer = json.loads(os.environ["STAND_IN_ANSWER"])
    system = Path(arguments[arguments.index("--system-prompt-file") + 1])
    given = {
        "arguments": arguments,
        "prompt": sys.stdin.buffer.read().decode("utf-8"),
        "system": system.read_text(encoding="utf-8"),
        "folder": os.getcwd(),
        "files": sorted(os.listdir()),
        "environ": {name: os.environ[name] for name in SHOWN if name in os.environ},
    }
    if answer.pop("leaves", False):
        child = subprocess.Popen(
            [sys.executable, "-c", "import threading; threading.Event().wait()"]
        )
        with open(os.environ["STAND_IN_LOG"] + ".child", "w", encoding="utf-8") as file:
            file.write(str(child.pid))
    with open(os.environ["STAND_IN_LOG"], "a", encoding="utf-8") as log:
        log.write(json.dumps(given) + "\n")
    if answer.pop("hang", False):
        threading.Event().wait()
    sys.stderr.write(answer.pop("stderr", ""))
    code, raw = answer.pop("exit", 0), answer.pop("raw", None)
    sys.stdout.write(json.dumps(_result(answer)) if raw is None else raw)
    return int(code)


def _result(answer: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "result",
        "subtype": "success",
        "is_error": False,
        "api_error_status": None,
        "result": "Hello.",
        "stop_reason": "end_turn",
        "total_cost_usd": 0.002,
        "usage": {
            "input_tokens": 10,
            "cache_creation_input_tokens": 2,
            "cache_read_input_tokens": 1,
            "output_tokens": 7,
        },
        "num_turns": 1,
        **answer,
    }


if __name__ == "__main__":
    sys.exit(_main(sys.argv[1:]))
