"""Installing while other processes read, install, or are killed."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from filelock import FileLock

from stash_mcp.errors import InstallError

REPLACEMENTS = 150

READER = """
import json, pathlib, sys
skill, stop, texts = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), json.loads(sys.argv[3])
wanted = [text.encode() for text in texts]
seen, missing, partial, reads = set(), 0, 0, 0
print("ready", flush=True)
while reads < 5_000_000 and not stop.exists():
    reads += 1
    try:
        content = skill.read_bytes()
    except FileNotFoundError:
        missing += 1
        continue
    if content in wanted:
        seen.add(content)
    else:
        partial += 1
print(json.dumps({"missing": missing, "partial": partial, "seen": len(seen), "reads": reads}))
"""

INSTALLER = """
import sys
from datetime import UTC, datetime
from pathlib import Path
from stash_mcp.skills.install import install
from stash_mcp.skills.manifest import Manifest
from stash_mcp.skills.targets import Target
from stash_mcp.storage.database import Database
home, skills, run_id, text = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3], sys.argv[4]
for number in range(20):
    install(
        text + "x" * number, target=Target("claude-code", "project", skills), run_id=run_id,
        candidate=number, manifest=Manifest(Database(home / "library.db")),
        backups_dir=home / "backups", force=False, now=datetime.now(UTC),
    )
"""


def test_a_reader_never_misses_the_file_or_sees_a_part_of_it(bench, make_text, tmp_path: Path):
    texts = [make_text(body="short"), make_text(body="long line\n" * 400)]
    bench.install(texts[0])
    stop = tmp_path / "stop"
    command = [sys.executable, "-c", READER, str(bench.file), str(stop), json.dumps(texts)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as reader:
        assert reader.stdout.readline() == "ready\n"
        for number in range(REPLACEMENTS):
            assert bench.install(texts[(number + 1) % 2]).action == "replaced"
        stop.touch()
        told = json.loads(reader.stdout.readline())
    assert (told["missing"], told["partial"]) == (0, 0)
    assert told["seen"] == 2
    assert told["reads"] > REPLACEMENTS


def test_two_installers_at_once_leave_a_whole_file_that_the_record_knows(bench, make_text):
    command = [sys.executable, "-c", INSTALLER, str(bench.settings.home), str(bench.skills_dir)]
    processes = [
        subprocess.Popen([*command, run, make_text(body=run)], stderr=subprocess.PIPE, text=True)
        for run in ("run-a", "run-b")
    ]
    for process in processes:
        _, errors = process.communicate(timeout=60)
        assert (process.returncode, errors) == (0, "")
    rows = bench.manifest.all()
    assert {(row.run_id, row.candidate) for row in rows} == {
        (run, number) for run in ("run-a", "run-b") for number in range(20)
    }
    last = rows[-1]
    assert bench.file.read_text() == make_text(body=last.run_id) + "x" * last.candidate
    assert [path.name for path in bench.skills_dir.parent.iterdir()] == ["skills"]


def test_an_installation_that_goes_on_elsewhere_for_too_long_is_reported(bench, monkeypatch):
    monkeypatch.setattr("stash_mcp.skills.install.LOCK_SECONDS", 0.0)
    other = FileLock(bench.settings.home / "install.lock")
    with other, pytest.raises(InstallError, match="Another installation"):
        bench.install()
    assert not bench.skills_dir.exists()
