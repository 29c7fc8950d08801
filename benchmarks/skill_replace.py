"""Whether an agent that reads a skill ever finds it missing or half-written while it is replaced.

A reader in another process reads SKILL.md as fast as it can. The reference replaces it the plain
way: the folder away, then written anew.
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
from pathlib import Path

from benchmarks import skill_reader
from benchmarks.benchmark import Benchmark, Row
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
    seen: skill_reader.Seen
    seconds: float

    @property
    def bad_reads(self) -> int:
        return self.seen.missing + self.seen.partial


def run(size: Size) -> list[Row]:
    with tempfile.TemporaryDirectory() as folder:
        ours = _watched(Path(folder, "ours"), _installer(Path(folder, "ours")), size.replacements)
        plain_dir = Path(folder, "plain")
        plain = _watched(plain_dir, lambda text: _write_plainly(plain_dir, text), size.replacements)
    return [
        _count("reads that found no file", ours, plain, ours.seen.missing, plain.seen.missing),
        _count("reads that found a part", ours, plain, ours.seen.partial, plain.seen.partial),
        Row(
            "reads during the replacements",
            f"{ours.seen.reads / ours.seconds:,.0f} /s",
            f"{plain.seen.reads / plain.seconds:,.0f} /s",
            (ours.seen.reads / ours.seconds) / (plain.seen.reads / plain.seconds),
            size.replacements,
        ),
        Row(
            "time of one replacement (ours: checked, synced to disk, recorded)",
            f"{ours.seconds / size.replacements * 1000:.1f} ms",
            f"{plain.seconds / size.replacements * 1000:.1f} ms",
            ours.seconds / plain.seconds,
            size.replacements,
        ),
    ]


def _count(what: str, ours: _Watched, plain: _Watched, our_count: int, plain_count: int) -> Row:
    return Row(
        f"{what} (must be 0)",
        f"{our_count:,} of {ours.seen.reads:,}",
        f"{plain_count:,} of {plain.seen.reads:,}",
        our_count / plain_count if plain_count else None,
    )


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


def _watched(skills_dir: Path, write: Callable[[str], None], replacements: int) -> _Watched:
    """Replace the skill so often while another process reads it."""
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
        began = time.perf_counter()
        for text in texts:
            write(text)
        seconds = time.perf_counter() - began
        said, _ = reader.communicate()
    return _Watched(skill_reader.Seen(**json.loads(said)), seconds)


BENCHMARK = Benchmark(run, smallest=Size(3), quick=Size(100), full=Size(500))
