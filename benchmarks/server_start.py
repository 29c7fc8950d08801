"""How long a client waits for the server, and for its end, beside an empty server of the SDK.

Both are whole processes: from the spawn to the answer to `initialize`, and from the end of
standard input to the end of the process. The first list of tools is measured too, because what a
server puts off until after `initialize` is paid then.
"""

import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from benchmarks.benchmark import Benchmark, Row
from benchmarks.server_life import OURS, empty_server, life
from benchmarks.timing import compared, interleaved, seconds

TARGET = 1.15


@dataclass(frozen=True)
class Size:
    repetitions: int


@dataclass(frozen=True)
class _Times:
    """Seconds from the spawn to the answer, from there to the list of tools, and from the end of
    the input to the end.
    """

    start: float
    tools: float
    stop: float


def run(size: Size) -> list[Row]:
    with tempfile.TemporaryDirectory() as folder:
        home, reference = Path(folder, "home"), empty_server(Path(folder))
        # Once each before it counts: the first start compiles, and fills the disk's cache.
        interleaved(lambda: _times(OURS, home), lambda: _times(reference, home), 1)
        pairs = interleaved(
            lambda: _times(OURS, home), lambda: _times(reference, home), size.repetitions
        )
    return [
        compared(
            f"from spawn to initialize (target: {TARGET})",
            [(one.start, other.start) for one, other in pairs],
            seconds,
        ),
        Row(
            "from initialize to the first list of tools",
            ours=seconds(median(one.tools for one, _ in pairs)),
            reference="-",
            n=len(pairs),
        ),
        compared(
            "from the end of its input to its end",
            [(one.stop, other.stop) for one, other in pairs],
            seconds,
        ),
    ]


def _times(command: Sequence[str], home: Path) -> _Times:
    spawned = time.perf_counter()
    with life(command, home) as server:
        server.initialize()
        answered = time.perf_counter()
        server.ask(2, "tools/list", {})
        listed = time.perf_counter()
        stop = server.seconds_to_end(server.close_input)
    return _Times(answered - spawned, listed - answered, stop)


BENCHMARK = Benchmark(run, smallest=Size(1), quick=Size(3), full=Size(11))
