import json

from support.staging import Stage

BETTER = (("Answer.", 0.4), ("Ask for the order number.", 0.6))


def test_watch_once_installs_what_is_finished_and_says_so(command, stage: Stage) -> None:
    run = stage.finished(*BETTER)
    said = command("watch", "--once")
    assert said.code == 0
    assert f"The skill of run {run.id} is installed" in said.out
    assert command("watch", "--once").out == ""


def test_watch_gives_json_for_programs(command, stage: Stage) -> None:
    run = stage.finished(*BETTER)
    notice = json.loads(command("watch", "--once", "--json").out)
    assert (notice["run_id"], notice["state"]) == (run.id, "installed")
