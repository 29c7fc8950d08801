"""The command, driving Stash."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from stand_in_stash import Odd, stand_in
from support.doors import Doors
from support.spoiled import put, spoiled
from support.stash_calls import conversations
from support.two_sides import TwoSides, trained_at_stash, two_sides

from stash_mcp.cli.following import MOST_MISSED
from stash_mcp.models import JobStatus


@pytest.fixture
def both(tmp_path: Path) -> Iterator[TwoSides]:
    with two_sides(tmp_path) as opened:
        yield opened


@pytest.fixture
def doors(both: TwoSides, capsys: pytest.CaptureFixture[str]) -> Doors:
    doors = Doors(both.stage, capsys)
    doors.session.open_backend = lambda _settings: both.backend
    return doors


def test_the_whole_way_at_stash(both: TwoSides, doors: Doors) -> None:
    both.stash.world.polls = 1
    file = both.stage.settings.project_dir / "talks.jsonl"
    file.write_text(conversations(3), encoding="utf-8")
    said = doors.command("import", str(file), "--backend", "stash")
    assert said.out.startswith(
        "Imported 3 conversations (stash) into Stash, whose ids are:\nstash:"
    )
    good, bad, poor = said.out.splitlines()[1:4]
    assert good in doors.command("traces", "--backend", "stash").out
    doors.command("annotate", good, "--step", "1", "--rating", "up")
    doors.command("annotate", bad, "--step", "1", "--rating", "down", "--comment", "Say when.")
    doors.command("annotate", poor, "--step", "1", "--rating", "down")
    assert "down: Say when. (ada)" in doors.command("trace", bad).out
    trained = doors.command("train", "--backend", "stash", "--name", "tone", "--json")
    model = json.loads(trained.out)["id"]
    assert model.startswith("stash:")
    assert "tone" in doors.command("models", "--backend", "stash").out
    ran = doors.command("run", "--reward-model", model, "--task-model", "openai/small")
    assert ran.code == 0, ran.err
    assert "Unproven: in-sample alone." in ran.out
    assert "is installed:" in ran.out
    assert "holds none out, so its numbers are in-sample" in ran.err
    [run] = json.loads(doors.command("runs", "--json").out)
    assert (run["backend"], run["status"], run["progress"]) == ("stash", "succeeded", None)
    assert "reviewers-advice" in doors.command("installed").out
    assert both.stash.key not in f"{said}{trained}{ran}"


def test_following_asks_seldom_and_more_and_more_so(both: TwoSides, doors: Doors) -> None:
    model = trained_at_stash(both)
    slept: list[float] = []

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        if len(slept) == 9:
            both.end_run("stash")

    doors.session.sleep = sleep
    ran = doors.command("run", "--reward-model", model, "--task-model", "openai/small")
    assert ran.code == 0
    assert slept[0] >= 2
    assert slept == sorted(slept)
    assert slept[8] == 30


def test_following_goes_on_through_failures_that_pass(both: TwoSides, doors: Doors) -> None:
    model = trained_at_stash(both)
    slept: list[float] = []

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        both.stash.always = Odd(status=503, body=b"{}") if len(slept) < 4 else None
        if len(slept) == 6:
            both.end_run("stash")

    doors.session.sleep = sleep
    order = ("run", "--reward-model", model, "--task-model", "openai/small")
    ran = doors.command(*order, "--install", "off")
    assert ran.code == 0
    assert ran.err.count("It is asked again") == 1
    assert min(slept[1:4]) >= 15


def test_following_gives_up_where_stash_stays_away(both: TwoSides, doors: Doors) -> None:
    model = trained_at_stash(both)
    slept: list[float] = []

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        both.stash.always = Odd(status=503, body=b"{}")

    doors.session.sleep = sleep
    ran = doors.command("run", "--reward-model", model, "--task-model", "openai/small")
    assert ran.code == 1
    assert len(slept) == MOST_MISSED


def test_an_equal_run_that_is_over_is_shown_with_its_end(both: TwoSides, doors: Doors) -> None:
    model = trained_at_stash(both)
    order = ("run", "--reward-model", model, "--task-model", "openai/small", "--no-wait")
    assert doors.command(*order).code == 0
    both.end_run("stash")
    said = doors.command(*order)
    assert "An equal run is there already; it ended on " in said.err
    assert "--new starts another run" in said.err
    assert len(both.stash.world.runs) == 1


def test_status_says_that_stash_was_out_of_reach(both: TwoSides, doors: Doors) -> None:
    both.stash.always = Odd(reset=True)
    none = doors.command("status")
    assert none.code == 1
    assert "Stash could not be asked" in none.err
    both.stage.finished(("Answer.", 0.4), ("Ask for the order number.", 0.6))
    one = doors.command("status")
    assert one.code == 0
    assert "Stash could not be asked" in one.err


def test_a_run_of_another_stash_is_shown_as_it_was_last_seen(both: TwoSides, doors: Doors) -> None:
    model = trained_at_stash(both)
    order = ("run", "--reward-model", model, "--task-model", "openai/small", "--no-wait", "--json")
    run = json.loads(doors.command(*order).out)["id"]
    with stand_in() as second:
        both.stash = second
        assert "queued, as last seen" in doors.command("runs").out
        for command in (("status", run), ("status", run, "--follow")):
            assert "which is not the one set now" in doors.command(*command).out


def test_what_stash_cannot_do_is_an_error_with_its_code(both: TwoSides, doors: Doors) -> None:
    model = trained_at_stash(both)
    order = ("run", "--reward-model", model, "--task-model", "openai/small", "--no-wait", "--json")
    run = json.loads(doors.command(*order).out)["id"]
    for command in (
        ("cancel", run),
        ("resume", run),
        ("logs", run),
        (*order, "--max-seconds", "9"),
    ):
        refused = doors.command(*command, *(() if "--json" in command else ("--json",)))
        assert refused.code == 1
        assert json.loads(refused.out)["error"]["code"] == "unsupported"


def test_a_run_without_a_named_model_takes_none_of_stash_unless_that_is_the_setting(
    both: TwoSides, doors: Doors
) -> None:
    trained_at_stash(both)
    refused = doors.command("run", "--task-model", "openai/small")
    assert "There is no trained reward model" in refused.err
    assert both.stash.world.runs == {}


def test_lists_say_on_standard_error_that_stash_was_out_of_reach(
    both: TwoSides, doors: Doors, monkeypatch: pytest.MonkeyPatch
) -> None:
    both.stash.always = Odd(reset=True)
    for command in ("runs", "models"):
        said = doors.command(command)
        assert said.code == 0
        assert "Stash could not be asked" in said.err
    assert "Stash" not in doors.command("traces").err


def test_watch_installs_what_ended_at_stash(both: TwoSides, doors: Doors) -> None:
    model = trained_at_stash(both)
    order = ("run", "--reward-model", model, "--task-model", "openai/small", "--no-wait")
    assert doors.command(*order).code == 0
    both.end_run("stash")
    both.stage.now += 10**7 * both.stage.now.resolution
    said = doors.command("watch", "--once")
    assert "is installed:" in said.out
    assert both.backend.list_runs()[0].status is JobStatus.SUCCEEDED


@pytest.mark.parametrize("given", ["[1]", "{"])
def test_a_training_config_that_is_no_object_is_refused(doors: Doors, given: str) -> None:
    refused = doors.command("train", "--backend", "stash", "--training-config", given)
    assert refused.code == 2
    assert "--training-config is no JSON" in refused.err


def test_what_cannot_be_read_is_said_and_the_rest_is_shown(both: TwoSides, doors: Doors) -> None:
    model = trained_at_stash(both)
    order = ("run", "--reward-model", model, "--no-wait", "--task-model")
    doors.command(*order, "openai/a")
    doors.command(*order, "openai/b")
    odd, sound = (f"stash:{id}" for id in both.stash.world.runs)
    with spoiled(both.stash, "/gepa-runs", lambda rows: [*rows[:1], put(status="gone")(rows[1])]):
        said = doors.command("runs")
    assert (said.code, sound in said.out) == (0, True)
    assert f"{odd}: `status`: 'gone' is a state" in " ".join(said.err.split())
    with spoiled(both.stash, "/reward-models", lambda rows: [put(epochs=None)(rows[0])]):
        said = doors.command("models", "--backend", "stash")
    assert f"{model}: `epochs`" in " ".join(said.err.split())


def test_an_export_to_a_file_has_what_can_be_read_and_says_what_it_lacks(
    both: TwoSides, doors: Doors
) -> None:
    trained_at_stash(both)
    file = both.stage.settings.project_dir / "notes.jsonl"
    odd = iter([put(rating=0)])
    with spoiled(both.stash, "/export/annotations", lambda row: next(odd, put())(row)):
        said = doors.command("export", "annotations", str(file), "--backend", "stash")
    assert said.code == 1
    assert "1 exported line of Stash could not be read" in said.err
    assert len(file.read_text(encoding="utf-8").splitlines()) == 3
