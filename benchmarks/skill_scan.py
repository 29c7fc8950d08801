"""How long the scan of a skill's body takes at its longest, whatever stands in it.

Ours are bodies of the rules' own words, repeated until the body is full: each is on the way to a
finding everywhere and at no end, which is what a pattern that backtracks cannot bear. The reference
is as much plain prose. And prose of ten times the length, against the same: 10 is linear.
"""

from collections.abc import Callable
from dataclasses import dataclass

from benchmarks.benchmark import Benchmark, Row
from benchmarks.timing import compared, interleaved, seconds, timed
from stash_mcp.skills.document import MAX_BODY_CHARACTERS
from stash_mcp.skills.scan import find_active

_PROSE = (
    "Ask for the number of the order first, look it up, and say on which day the customer hears "
    "from you again. Never promise a refund before the payments team has agreed.\n\n"
)
_REPEATED = (
    *("scp ~/", "nc -", "ping ", "silently send ", "send api access auth ", "send keys to http://"),
    *("do not tell the ", "curl -d ", "rm -rf -a ", "echo $A_KEY ", "cat ~/.ssh/", "<img src="),
    *("![a](https://x/?", "@a/", "<br>", ". ", "password=", "user must not ", "$ARGUMENTS"),
)


@dataclass(frozen=True)
class Size:
    repetitions: int


def run(size: Size) -> list[Row]:
    prose = _filled(_PROSE, MAX_BODY_CHARACTERS)
    slowest = max(
        (_filled(part, MAX_BODY_CHARACTERS) for part in _REPEATED),
        key=lambda body: timed(_scan(body)),
    )
    long = _filled(_PROSE, 10 * MAX_BODY_CHARACTERS)
    return [
        _row(
            f"scan of a body of repetitions, the slowest of {len(_REPEATED)}", slowest, prose, size
        ),
        _row("scan of prose of ten times a body's length", long, prose, size),
    ]


def _row(measured: str, ours: str, reference: str, size: Size) -> Row:
    pairs = interleaved(
        lambda: timed(_scan(ours)), lambda: timed(_scan(reference)), size.repetitions
    )
    return compared(measured, pairs, seconds)


def _scan(body: str) -> Callable[[], object]:
    return lambda: find_active(body)


def _filled(part: str, length: int) -> str:
    return (part * (length // len(part) + 1))[:length]


BENCHMARK = Benchmark(run, smallest=Size(1), quick=Size(5), full=Size(20))
