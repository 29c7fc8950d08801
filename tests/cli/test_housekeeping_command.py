import json
from datetime import timedelta

import pytest
from support.staging import Stage

from stash_mcp.server.counting import size
from stash_mcp.storage.calls import CallStore

SCORED = (("Be polite.", 0.4), ("Ask for the order number.", 0.6))


def test_kept_answers_are_counted_and_forgotten_on_request(command, stage: Stage) -> None:
    CallStore(stage.settings.calls_path, stage.clock).put_many({"a": "x" * 600, "b": "y" * 900})
    assert command("cache").out == "2 answers (1.5 KB) kept; --clear forgets them.\n"
    cleared = json.loads(command("cache", "--clear", "--json").out)
    assert cleared == {"entries": 2, "bytes": 1500, "cleared": True}
    assert json.loads(command("cache", "--json").out)["entries"] == 0
    assert command("cache", "--clear").out == "Forgot 0 answers (0 bytes).\n"


def test_pruning_takes_old_runs_but_none_that_is_installed(command, stage: Stage) -> None:
    old, installed = stage.finished(*SCORED), stage.finished(*SCORED)
    command("install", installed.id)
    stage.now += timedelta(days=40)
    recent = stage.finished(*SCORED)
    folders = {run.id: stage.settings.runs_dir / run.id for run in (old, installed, recent)}
    before = command("prune", "--dry-run")
    assert "Would remove the folders of 1 run (" in before.out
    assert f"  {old.id}\n" in before.out
    assert all(folder.exists() for folder in folders.values())
    pruned = json.loads(command("prune", "--older-than-days", "30", "--json").out)
    assert (pruned["run_ids"], pruned["kept_installed"]) == ([old.id], 1)
    assert [folder.exists() for folder in folders.values()] == [False, True, True]
    assert len(json.loads(command("candidates", old.id, "--json").out)) == 2
    assert "There is no log of" in command("logs", old.id).err
    assert "Removed the folders of 0 runs (0 bytes)." in command("prune").out


def test_a_run_whose_skill_was_taken_away_is_pruned_as_any_other(command, stage: Stage) -> None:
    old = stage.finished(*SCORED)
    command("install", old.id)
    command("uninstall", "polite-support")
    stage.now += timedelta(days=40)
    recent = stage.finished(*SCORED)
    command("install", recent.id)
    pruned = json.loads(command("prune", "--json").out)
    assert old.id in pruned["run_ids"]
    # It is no older than that, so it does not stay for its skill's sake.
    assert (recent.id in pruned["run_ids"], pruned["kept_installed"]) == (False, 0)


def test_a_run_whose_inputs_were_pruned_is_not_carried_on(command, stage: Stage) -> None:
    run = stage.cancelled(*SCORED)
    stage.now += timedelta(days=1)
    command("prune", "--older-than-days", "0")
    said = command("resume", run.id)
    assert said.code == 1
    assert "its inputs were pruned" in said.err
    assert stage.backend.get_run(run.id).status == "cancelled"


def test_disk_shows_the_room_of_each_part(command, stage: Stage) -> None:
    run = stage.finished(*SCORED)
    stage.write_log(run.id, "x" * 5_000_000)
    use = json.loads(command("disk", "--json").out)
    assert use["runs"] > 5_000_000
    assert use["home"] == str(stage.settings.home)
    table = command("disk").out
    assert "5.0 MB" in table
    assert f"In {stage.settings.home}" in table


@pytest.mark.parametrize(
    ("bytes", "words"),
    [
        (1, "1 byte"),
        (999, "999 bytes"),
        (1500, "1.5 KB"),
        (999_949, "999.9 KB"),
        (999_951, "1.0 MB"),
        (999_999_999, "1.0 GB"),
        (5_400_000_000_000, "5,400.0 GB"),
    ],
)
def test_sizes_are_in_the_unit_that_fits(bytes: int, words: str) -> None:
    assert size(bytes) == words
