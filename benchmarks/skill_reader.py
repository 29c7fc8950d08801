"""Reads one SKILL.md again and again until its standard input ends, then says what it saw.

A program of its own, so that nothing it shares with the writer hides a half-written file. It says
`ready` after the first whole read, and JSON of `Seen` at the end.
"""

import json
import re
import sys
import threading
from dataclasses import asdict, dataclass
from pathlib import Path

LAST_LINE = "This is the end."
_VERSION = re.compile(rb"version (\d+)")


@dataclass
class Seen:
    reads: int = 0
    missing: int = 0
    partial: int = 0


def is_whole(content: bytes) -> bool:
    """From the first line to the last, and of one version throughout."""
    return (
        content.startswith(b"---\n")
        and content.endswith(LAST_LINE.encode())
        and len(set(_VERSION.findall(content))) == 1
    )


def look(file: Path, seen: Seen) -> None:
    seen.reads += 1
    try:
        content = file.read_bytes()
    except OSError:
        seen.missing += 1
        return
    seen.partial += not is_whole(content)


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def main(file: Path) -> None:
    over = threading.Event()

    def wait() -> None:
        sys.stdin.read()
        over.set()

    threading.Thread(target=wait, daemon=True).start()
    _say("ready")
    seen = Seen()
    while not over.is_set():
        look(file, seen)
    _say(json.dumps(asdict(seen)))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
