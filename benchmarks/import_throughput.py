"""How fast conversations come into the library, are listed and come out again.

The reference is `json.loads` on each line of the same bytes: what reading them costs at least.
"""

import json
import random
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from benchmarks.benchmark import Benchmark, Row
from benchmarks.timing import compared, interleaved, per_second, timed
from stash_mcp.backends.local import LocalBackend, open_local_backend
from stash_mcp.settings import Settings

_PAGE = 100
_SAID = "please parcel order refund when where number customer address arrive thanks late"


@dataclass(frozen=True)
class Size:
    conversations: int
    repetitions: int


def run(size: Size) -> list[Row]:
    data = conversations(size.conversations)
    megabytes = len(data) / 1e6
    with tempfile.TemporaryDirectory() as folder:
        libraries = [_open(Path(folder, str(number))) for number in range(max(1, size.repetitions))]
        unused = iter(libraries)
        actions: list[tuple[str, Callable[[], object]]] = [
            ("imported", lambda: next(unused).import_traces(data)),
            (f"listed, in pages of {_PAGE}", lambda: _list_all(libraries[0], size.conversations)),
            ("exported", lambda: sum(len(line) for line in libraries[0].export_traces())),
        ]
        return [
            _row(f"conversations {what} ({megabytes:.1f} MB)", action, data, size)
            for what, action in actions
        ]


def _row(measured: str, action: Callable[[], object], data: bytes, size: Size) -> Row:
    pairs = interleaved(
        lambda: size.conversations / timed(action),
        lambda: size.conversations / timed(lambda: _parse(data)),
        size.repetitions,
    )
    return compared(measured, pairs, per_second)


def conversations(count: int) -> bytes:
    """JSONL of the Stash Trace Format: six steps each, about 1.3 KB, the same every time."""
    choose = random.Random(0)
    return b"".join(_conversation(number, choose) for number in range(count))


def _conversation(number: int, choose: random.Random) -> bytes:
    steps: list[dict[str, object]] = [
        {"role": "system", "content": _text(choose, 40)},
        {"role": "user", "content": _text(choose, 30)},
        {
            "role": "assistant",
            "content": "",
            "tool_name": "find_order",
            "tool_input": {"order": number},
            "tool_call_id": f"call-{number}",
        },
        {
            "role": "tool",
            "content": _text(choose, 40),
            "tool_name": "find_order",
            "tool_call_id": f"call-{number}",
        },
        {"role": "assistant", "content": _text(choose, 50)},
        {"role": "user", "content": _text(choose, 10)},
    ]
    return json.dumps({"id": f"c-{number:06}", "steps": steps}).encode() + b"\n"


def _text(choose: random.Random, words: int) -> str:
    return " ".join(choose.choices(_SAID.split(), k=words))


def _open(root: Path) -> LocalBackend:
    return open_local_backend(
        Settings(home=root / "home", project_dir=root, claude_config_dir=root / "claude")
    )


def _list_all(backend: LocalBackend, count: int) -> None:
    for offset in range(0, count, _PAGE):
        page = backend.list_traces(limit=_PAGE, offset=offset)
        if page.total != count:
            raise RuntimeError(f"the library lists {page.total} of {count} conversations")


def _parse(data: bytes) -> None:
    for line in data.splitlines():
        json.loads(line)


BENCHMARK = Benchmark(run, smallest=Size(20, 1), quick=Size(2_000, 1), full=Size(5_000, 3))
