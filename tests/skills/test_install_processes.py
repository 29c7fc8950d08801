"""Installing while other processes read, install, or are killed."""

import subprocess
import sys
from pathlib import Path

import pytest
from filelock import FileLock

from benchmarks.skill_replace import A_SKILL_EACH, ONE_SKILL, watched
from stash_mcp.errors import InstallError

REPLACEMENTS = 80
PLAIN_REPLACEMENTS = 300

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


@pytest.mark.parametrize("names", [ONE_SKILL, A_SKILL_EACH])
def test_while_two_processes_replace_a_reader_never_misses_the_file_or_sees_a_part_of_it(
    tmp_path: Path, names: tuple[str, ...]
) -> None:
    told = watched(tmp_path, names, REPLACEMENTS)
    assert told.replacements == REPLACEMENTS
    assert (told.seen.missing, told.seen.partial) == (0, 0)
    assert told.seen.reads > REPLACEMENTS


def test_the_reader_does_find_what_a_plain_replacement_leaves_open(tmp_path: Path) -> None:
    told = watched(tmp_path, A_SKILL_EACH, PLAIN_REPLACEMENTS, pause=0.0)
    assert told.seen.missing + told.seen.partial > 0


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
    monkeypatch.setattr("stash_mcp.skills.journal.LOCK_SECONDS", 0.0)
    other = FileLock(bench.settings.home / "install.lock")
    with other, pytest.raises(InstallError, match="Another installation"):
        bench.install()
    assert not bench.skills_dir.exists()
