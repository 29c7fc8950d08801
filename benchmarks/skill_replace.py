"""Whether an agent that reads a skill ever finds it missing or half-written while it is replaced.

A reader in another process reads SKILL.md as fast as it can. The reference replaces it the plain
way, the folder away and then written anew, as often a second as ours does.
"""

import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
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

_NAME = "polite-support"
_LINES = 200


@dataclass(frozen=True)
class Size:
    replacements: int


@dataclass(frozen=True)
class _Watched:
    """seconds: of the whole. writing: seconds of it that the replacements took."""

    seen: skill_reader.Seen
    seconds: float
    writing: float

    @property
    def reads_per_second(self) -> float:
        return self.seen.reads / self.seconds


def run(size: Size) -> list[Row]:
    with tempfile.TemporaryDirectory() as folder:
        ours_dir, plain_dir = Path(folder, "ours"), Path(folder, "plain")
        ours = _watched(ours_dir, _installer(ours_dir), size.replacements)
        plain = _watched(
            plain_dir,
            lambda text: _write_plainly(plain_dir, text),
            size.replacements,
            pause=ours.writing / size.replacements,
        )
    return _rows(ours, plain, size.replacements)


def _rows(ours: _Watched, plain: _Watched, replacements: int) -> list[Row]:
    def count(what: str, our_count: int, plain_count: int) -> Row:
        return Row(
            f"reads that found {what} (must be 0)",
            f"{our_count:,} of {ours.seen.reads:,}",
            f"{plain_count:,} of {plain.seen.reads:,}",
            our_count / plain_count if plain_count else None,
            replacements,
        )

    def milliseconds(watched: _Watched) -> str:
        return f"{watched.writing / replacements * 1000:.1f} ms"

    return [
        count("no file", ours.seen.missing, plain.seen.missing),
        count("a part of the file", ours.seen.partial, plain.seen.partial),
        Row(
            "reads meanwhile",
            per_second(ours.reads_per_second),
            per_second(plain.reads_per_second),
            ours.reads_per_second / plain.reads_per_second,
            replacements,
        ),
        Row(
            "one replacement (ours: checked, synced to disk, recorded)",
            milliseconds(ours),
            milliseconds(plain),
            ours.writing / plain.writing,
            replacements,
        ),
    ]


def text_of(version: int) -> str:
    """A whole SKILL.md of about 6 KB that names its version in every line."""
    lines = [f"- Line {number} is of version {version}." for number in range(_LINES)]
    body = "\n".join([*lines, skill_reader.LAST_LINE])
    return render(Skill(name=_NAME, description="Answers customers.", body=body))


def _installer(skills_dir: Path) -> Callable[[str], None]:
    home = skills_dir.parent / "home"
    manifest = Manifest(Database(home / "library.db"))
    target = Target("claude-code", "project", skills_dir)

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
    folder = skills_dir / _NAME
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text(text, encoding="utf-8", newline="\n")


def _watched(
    skills_dir: Path, write: Callable[[str], None], replacements: int, pause: float = 0.0
) -> _Watched:
    """Replace the skill so often, `pause` seconds apart, while another process reads it."""
    write(text_of(0))
    texts = [text_of(number) for number in range(1, replacements + 1)]
    file = skills_dir / _NAME / "SKILL.md"
    with subprocess.Popen(
        [sys.executable, skill_reader.__file__, str(file)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        encoding="utf-8",
    ) as reader:
        if reader.stdout is None or reader.stdout.readline() != "ready\n":
            raise RuntimeError("the reader did not start")
        began, writing = time.perf_counter(), 0.0
        for text in texts:
            writing += timed(partial(write, text))
            time.sleep(pause)
        seconds = time.perf_counter() - began
        said, _ = reader.communicate()
    return _Watched(skill_reader.Seen(**json.loads(said)), seconds, writing)


BENCHMARK = Benchmark(run, smallest=Size(3), quick=Size(60), full=Size(500))
