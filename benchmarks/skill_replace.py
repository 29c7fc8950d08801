"""Whether an agent that reads a skill ever finds it missing or half-written while it is replaced.

Two processes replace: the same skill, and then each one of its own. For each skill another process
reads its SKILL.md as fast as it can. The reference replaces it the plain way, the folder away and
then written anew, as often a second as ours does, a tenth as often in all.
"""

import json
import multiprocessing
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from benchmarks import skill_reader
from benchmarks.benchmark import Benchmark, Row
from benchmarks.timing import per_second, timed
from stash_mcp.models import Skill
from stash_mcp.skills.document import render
from stash_mcp.skills.install import install
from stash_mcp.skills.manifest import Manifest
from stash_mcp.skills.targets import Target
from stash_mcp.storage.database import Database

WRITERS = 2
ONE_SKILL = ("polite-support",) * WRITERS
A_SKILL_EACH = ("polite-support", "quick-refunds")
_LINES = 40
_OURS_PER_PLAIN = 10
_APART = 1_000_000


@dataclass(frozen=True)
class Size:
    replacements: int


@dataclass(frozen=True)
class Watched:
    """seconds: of the whole. writing: seconds that the replacements took, of all writers."""

    seen: skill_reader.Seen
    replacements: int
    seconds: float
    writing: float

    @property
    def reads_per_second(self) -> float:
        return self.seen.reads / self.seconds

    @property
    def one(self) -> float:
        return self.writing / self.replacements


def run(size: Size) -> list[Row]:
    half = max(1, size.replacements // 2)
    return [
        *_compared("one skill", ONE_SKILL, half),
        *_compared("a skill each", A_SKILL_EACH, half),
    ]


def _compared(what: str, names: Sequence[str], replacements: int) -> list[Row]:
    with tempfile.TemporaryDirectory() as folder:
        ours = watched(Path(folder, "ours"), names, replacements)
        plain = watched(
            Path(folder, "plain"),
            names,
            max(WRITERS, replacements // _OURS_PER_PLAIN),
            pause=ours.one,
        )
    return _rows(f"{WRITERS} writers, {what}", ours, plain)


def _rows(what: str, ours: Watched, plain: Watched) -> list[Row]:
    def count(found: str, our_count: int, plain_count: int) -> Row:
        return Row(
            f"{what}: reads that found {found} (must be 0)",
            f"{our_count:,} of {ours.seen.reads:,}",
            f"{plain_count:,} of {plain.seen.reads:,}",
            our_count / plain_count if plain_count else None,
            ours.replacements,
        )

    return [
        count("no file", ours.seen.missing, plain.seen.missing),
        count("a part of the file", ours.seen.partial, plain.seen.partial),
        Row(
            f"{what}: reads meanwhile",
            per_second(ours.reads_per_second),
            per_second(plain.reads_per_second),
            ours.reads_per_second / plain.reads_per_second,
            ours.replacements,
        ),
        Row(
            f"{what}: one replacement (ours: waited for, checked, synced, recorded)",
            f"{ours.one * 1000:.1f} ms",
            f"{plain.one * 1000:.1f} ms",
            ours.one / plain.one,
            ours.replacements,
        ),
    ]


def watched(
    root: Path, names: Sequence[str], replacements: int, pause: float | None = None
) -> Watched:
    """Replace so often in all, by a process for each of `names`, while others read.

    pause: None for ours; seconds between two replacements for the plain way.
    """
    context = multiprocessing.get_context("spawn")
    each, skills_dir = replacements // len(names), root / "skills"
    for name in set(names):
        _writer(root, pause)(text_of(name, 0))
    with ExitStack() as readers, context.Pool(len(names)) as pool:
        said = [readers.enter_context(_reader(skills_dir / name)) for name in set(names)]
        began = time.perf_counter()
        work = [(root, name, number, each, pause) for number, name in enumerate(names)]
        writing = sum(pool.starmap(_write, work, chunksize=1))
        seconds = time.perf_counter() - began
        seen = [_ended(reader) for reader in said]
    return Watched(_sum(seen), each * len(names), seconds, writing)


def _write(root: Path, name: str, number: int, count: int, pause: float | None) -> float:
    """In a process of its own: seconds that its replacements took."""
    write, first, seconds = _writer(root, pause), 1 + number * _APART, 0.0
    for version in range(first, first + count):
        text = text_of(name, version)
        seconds += timed(partial(write, text))
        time.sleep(pause or 0)
    return seconds


def _writer(root: Path, pause: float | None) -> Callable[[str], None]:
    return _installer(root) if pause is None else partial(_write_plainly, root / "skills")


def text_of(name: str, version: int) -> str:
    """A whole SKILL.md of about 1.5 KB that names its version in every line."""
    lines = [f"- Line {number} is of version {version}." for number in range(_LINES)]
    body = "\n".join([*lines, skill_reader.LAST_LINE])
    return render(Skill(name=name, description="Answers customers.", body=body))


def _installer(root: Path) -> Callable[[str], None]:
    home = root / "home"
    manifest = Manifest(Database(home / "library.db"))
    target = Target("claude-code", "project", root / "skills")

    def write(text: str) -> None:
        install(
            text,
            target=target,
            run_id="run-1",
            candidate=0,
            manifest=manifest,
            backups_dir=home / "backups",
            force=False,
            now=datetime.now(UTC),
        )

    return write


def _write_plainly(skills_dir: Path, text: str) -> None:
    folder = skills_dir / text.split("\n")[1].removeprefix("name: ")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "SKILL.md").write_text(text, encoding="utf-8", newline="\n")


# --- the readers ---


@contextmanager
def _reader(folder: Path) -> Iterator["subprocess.Popen[str]"]:
    with subprocess.Popen(
        [sys.executable, skill_reader.__file__, str(folder / "SKILL.md")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        encoding="utf-8",
    ) as reader:
        if reader.stdout is None or reader.stdout.readline() != "ready\n":
            raise RuntimeError("the reader did not start")
        yield reader


def _ended(reader: "subprocess.Popen[str]") -> skill_reader.Seen:
    said, _ = reader.communicate()
    return skill_reader.Seen(**json.loads(said))


def _sum(seen: Sequence[skill_reader.Seen]) -> skill_reader.Seen:
    return skill_reader.Seen(
        reads=sum(row.reads for row in seen),
        missing=sum(row.missing for row in seen),
        partial=sum(row.partial for row in seen),
    )


BENCHMARK = Benchmark(run, smallest=Size(8), quick=Size(120), full=Size(10_000))
