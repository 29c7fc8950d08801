"""Killed at any step, an installer leaves the old or the new, and the next call cleans up."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from support import killed_steps
from support.killed_steps import BODIES, CASES, NEW, NEWEST, OLD
from support.staging import skill

TESTS = Path(__file__).parents[1]
FEWEST_STEPS = 15
# Before and after the call that is killed, and after the next one; None for no file.
CONTENTS = {
    "replacing, then another": (skill(BODIES[OLD]), skill(BODIES[NEW]), skill(BODIES[NEWEST])),
    "forced over an edit": ("mine", skill(BODIES[NEW]), skill(BODIES[NEW])),
    "rolling back": (skill(BODIES[NEW]), skill(BODIES[OLD]), skill(BODIES[OLD])),
    "uninstalling": (skill(BODIES[OLD]), None, None),
    "installing by itself": (None, skill(BODIES[NEWEST]), skill(BODIES[NEWEST])),
}


def killed(case: str, folder: Path) -> list[killed_steps.Row]:
    said = subprocess.run(
        [sys.executable, killed_steps.__file__, case, str(folder)],
        env={**os.environ, "PYTHONPATH": str(TESTS)},
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=100,
        check=False,
    )
    assert said.returncode == 0, said.stderr
    return [killed_steps.Row(**row) for row in json.loads(said.stdout)]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork and SIGKILL")
@pytest.mark.parametrize("case", CASES)
def test_killed_at_any_step_it_leaves_old_or_new_and_the_next_call_cleans_up(
    case: str, tmp_path: Path
) -> None:
    rows = killed(case, tmp_path)
    before, after, later = CONTENTS[case]
    assert [row.was_killed for row in rows] == [True] * (len(rows) - 1) + [False]
    assert len(rows) >= FEWEST_STEPS
    assert {row.killed for row in rows} == {before, after}
    for row in rows:
        # What was written is known as ours, though the killed process could not record it.
        assert row.killed_state == state(row.killed, case)
        # An agent that lists the folder finds no half-made skill in it.
        assert row.listed in ([], ["polite-support"])
        assert row.next == later
        assert row.next_state == ("uninstalled" if later is None else "current")
        assert (row.left, row.unkept) == ([], 0)
    if case == "installing by itself":
        assert {(row.versions, row.waiting, row.told) for row in rows} == {(1, 0, 1)}


def state(content: str | None, case: str) -> str:
    if content is None:
        return "uninstalled" if case == "uninstalling" else "unknown"
    return "edited" if content == "mine" else "current"
