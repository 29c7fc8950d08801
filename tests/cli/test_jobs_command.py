import io
import json
from dataclasses import replace
from datetime import timedelta

import pytest
from rich.console import Console
from support.staging import METRICS, Stage, result, write_checkpoint

from stash_mcp.cli.session import Session
from stash_mcp.runs.folder import JobFolder

SCORED = (("Be polite.", 0.4), ("Ask for the order number.", 0.6))


class Worker:
    """Does one step of the job's work at each pause of whoever follows it."""

    def __init__(self, stage: Stage, session: Session, *steps) -> None:
        self._steps = list(steps)
        self._stage = stage
        session.sleep = self

    def __call__(self, _seconds: float) -> None:
        self._steps.pop(0)(self._stage)


def succeed_training(stage: Stage) -> None:
    [model] = stage.backend.list_reward_models()
    write_checkpoint(JobFolder(stage.settings.reward_models_dir / model.id).model_path)
    stage.store.succeed(model.id, json.dumps({"metrics": METRICS}))


def succeed_run(stage: Stage) -> None:
    [run] = stage.backend.list_runs()
    stage.score(run.id, *SCORED)
    stage.store.succeed(run.id, json.dumps(result(SCORED)))


def fail_run(stage: Stage) -> None:
    [run] = stage.backend.list_runs()
    stage.store.fail(run.id, reason="The task model refused the key.", error="...\nlog")


def test_train_follows_to_the_end_and_tells_the_accuracy(
    command, stage: Stage, session: Session
) -> None:
    stage.conversations()
    Worker(stage, session, Stage.begin, succeed_training)
    said = command("train", "--name", "reviews")
    assert said.code == 0
    assert "Started." in said.err
    assert "ranks 2 of 2 held-out pairs right, too few to tell" in said.out
    assert "Next: stash-skills run --reward-model" in said.err


def test_train_without_waiting_returns_the_queued_model(command, stage: Stage) -> None:
    stage.conversations()
    model = json.loads(command("train", "--no-wait", "--epochs", "2", "--json").out)
    assert (model["kind"], model["status"], model["epochs"]) == ("training", "queued", 2)


def test_train_on_too_few_ratings_says_what_to_annotate(command, stage: Stage) -> None:
    stage.conversations(1)
    said = command("train")
    assert said.code == 1
    assert said.err.startswith("Error: ")


def test_run_shows_its_plan_takes_the_newest_model_and_follows(
    command, stage: Stage, session: Session
) -> None:
    stage.conversations()
    model = stage.trained()
    Worker(stage, session, Stage.begin, succeed_run)
    said = command("run", "--task-model", "openai/small")
    assert said.code == 0
    assert f"Taking the newest reward model, {model.id} (reviews)." in said.err
    assert "- 12 conversations to optimise on" in said.err
    assert said.err.index("12 conversations") < said.err.index("Started.")
    assert "The skill helped; how far is uncertain." in said.out
    assert "gain +0.170 (95 % interval -0.020 to +0.360)" in said.out


def test_a_failed_run_gives_its_reason_and_exit_code_1(
    command, stage: Stage, session: Session
) -> None:
    stage.conversations()
    stage.trained()
    Worker(stage, session, Stage.begin, fail_run)
    said = command("run", "--task-model", "openai/small", "--json")
    assert said.code == 1
    run = json.loads(said.out)
    assert (run["status"], run["reason"]) == ("failed", "The task model refused the key.")


def test_run_passes_every_option_on(command, stage: Stage) -> None:
    stage.conversations()
    model = stage.trained()
    said = command(
        *("run", "--no-wait", "--json", "--reward-model", model.id, "--task-model", "openai/x"),
        *("--reflection-model", "openai/big", "--task-api-base", "http://127.0.0.1:1/v1"),
        *("--reflection-api-base", "http://127.0.0.1:2/v1", "--max-metric-calls", "200"),
        *("--skill-name", "polite-support", "--skill-description", "Use it to answer."),
        *("--trace", "c-0*", "--trace", "c-10", "--random-seed", "7", "--no-heldout"),
        *("--max-concurrency", "2", "--minibatch-size", "2"),
        *(
            "--proposals-at-once",
            "3",
            "--max-seconds",
            "90",
            "--no-improvement-for",
            "4",
            "--fresh",
        ),
    )
    assert said.code == 0, said.err
    run = json.loads(said.out)
    assert run["request"] == {
        "reward_model_id": model.id,
        "task_model": "openai/x",
        "task_api_base": "http://127.0.0.1:1/v1",
        "reflection_model": "openai/big",
        "reflection_api_base": "http://127.0.0.1:2/v1",
        "max_metric_calls": 200,
        "skill_name": "polite-support",
        "skill_description": "Use it to answer.",
        "random_seed": 7,
        "adopted": None,
        "minibatch_size": 2,
        "proposals_at_once": 3,
        "max_concurrency": 2,
        "heldout": 0,
        "max_cost_usd": None,
        "max_seconds": 90,
        "no_improvement_for": 4,
        "fresh": True,
        "measured": None,
    }
    assert run["existing"] is False
    assert run["plan"]["examples"] == 11


def test_a_cap_on_the_cost_needs_models_whose_price_is_known(command, stage: Stage) -> None:
    stage.conversations()
    stage.trained()
    capped = ("run", "--no-wait", "--json", "--max-cost-usd", "0.5", "--task-model")
    refused = command(*capped, "openai/x")
    assert refused.code == 1
    assert "price" in json.loads(refused.out)["error"]["message"]
    accepted = command(*capped, "openai/gpt-4o-mini")
    assert json.loads(accepted.out)["request"]["max_cost_usd"] == 0.5


def test_an_equal_run_is_shown_and_not_started_again_unless_wanted(
    command, stage: Stage, session: Session
) -> None:
    stage.conversations()
    stage.trained()
    started = ("run", "--task-model", "openai/small", "--no-wait", "--json")
    first = json.loads(command(*started).out)
    waiting = json.loads(command(*started).out)
    assert (waiting["id"], waiting["existing"], first["existing"]) == (first["id"], True, False)
    stage.begin()
    succeed_run(stage)
    done = command("run", "--task-model", "openai/small")
    assert done.code == 0
    assert "An equal run is there already; --new starts another." in done.err
    assert "The skill helped; how far is uncertain." in done.out
    another = json.loads(command(*started, "--new").out)
    assert (another["existing"], another["status"]) == (False, "queued")
    assert another["id"] != first["id"]


def test_the_plan_gives_the_expected_cost_or_says_that_no_price_is_known(
    command, stage: Stage
) -> None:
    stage.conversations()
    stage.trained()
    priced = command("run", "--no-wait", "--task-model", "openai/gpt-4o-mini")
    assert "- Expected cost if every call is made: about $0.0" in priced.err
    unpriced = command("run", "--no-wait", "--task-model", "openai/small")
    assert "- Expected cost: price not known." in unpriced.err


def test_run_without_a_trained_model_says_to_train(command, stage: Stage) -> None:
    said = command("run", "--task-model", "openai/small")
    assert said.code == 1
    assert "There is no trained reward model." in said.err


def test_run_does_not_take_an_older_model_while_the_newest_is_in_training(
    command, stage: Stage
) -> None:
    stage.conversations()
    stage.trained()
    newest = stage.train()
    said = command("run", "--task-model", "openai/small")
    assert said.code == 1
    assert f"stash-skills status {newest.id} --follow" in said.err
    assert stage.backend.list_runs() == []


def test_status_takes_a_run_a_training_or_the_newest_run(command, stage: Stage) -> None:
    run = stage.finished(*SCORED)
    training = json.loads(command("status", run.request.reward_model_id, "--json").out)
    newest = json.loads(command("status", "--json").out)
    assert (training["kind"], newest["kind"], newest["id"]) == ("training", "run", run.id)
    assert newest["events"][-1]["message"]
    assert "succeeded after 1 min 30 s" in command("status", run.id).out


def test_status_of_nothing_is_refused(command, stage: Stage) -> None:
    assert "There is no run yet." in command("status").err
    assert "no run and no reward model 'x'" in command("status", "x").err


def test_status_of_a_running_job_shows_phase_and_estimate(command, stage: Stage) -> None:
    stage.conversations()
    run = stage.start(stage.trained().id)
    stage.begin()
    stage.report(
        run.id,
        phase="scoring",
        done=3,
        total=6,
        metric_calls=9,
        seed_score=0.4,
        best_score=0.5,
        estimate_seconds=130,
    )
    said = command("status").out
    assert "running after 0 s - scoring 3/6, 9/120 calls" in said
    assert "in-sample best 0.500 (seed 0.400), about 2 min 10 s left" in said


def test_status_of_a_run_tells_spend_life_and_why_it_ended(command, stage: Stage) -> None:
    run = stage.running(*SCORED)
    priced = {"calls": 2, "remembered": 1, "prompt_tokens": 1000, "cost_usd": 0.0123}
    stage.report(run.id, task_usage=priced)
    stage.now += timedelta(seconds=7)
    running = command("status", run.id).out
    assert "openai/small: 2 calls, 1,000 tokens in, 0 out, $0.0123; 1 answer remembered" in running
    assert "Last sign of life of its worker: 7 s ago." in running
    stage.report(run.id, task_usage={"calls": 3})
    stage.store.succeed(run.id, json.dumps({**result(SCORED), "stop_reason": "time"}))
    over = command("status", run.id).out
    assert "openai/small: 3 calls, 0 tokens in, 0 out, price not known" in over
    assert "It ended because max_seconds of work were reached." in over
    assert "Last sign of life" not in over
    assert "builtin/comments:" not in over


def test_trainings_and_runs_that_wait_have_places_in_one_queue(command, stage: Stage) -> None:
    run = stage.running()
    queued = [stage.train().id]
    for _ in range(2):
        stage.now += timedelta(seconds=1)
        queued.append(stage.start(run.request.reward_model_id).id)
    rows = json.loads(command("runs", "--json").out)
    assert [(row["id"], row["queue_place"]) for row in rows] == [
        (queued[2], 3),
        (queued[1], 2),
        (run.id, None),
    ]
    assert json.loads(command("models", "--json").out)[0]["queue_place"] == 1
    assert "queued, place 2 in the queue" in command("runs").out
    assert "queued, place 1 in the queue" in command("models").out
    assert "queued - place 3 in the queue" in command("status").out


def test_the_lists_are_newest_first(command, stage: Stage) -> None:
    run = stage.finished(*SCORED)
    second = stage.start(run.request.reward_model_id)
    listed = json.loads(command("runs", "--json").out)
    assert [row["id"] for row in listed] == [second.id, run.id]
    assert "polite-support" in command("runs").out
    assert json.loads(command("models", "--json").out)[0]["metrics"]["eval_accuracy"] == 0.75
    assert "2 of 2 pairs" in command("models").out


def test_a_reward_model_goes_out_as_an_archive_and_comes_back(
    command, stage: Stage, tmp_path
) -> None:
    stage.conversations()
    model = stage.trained()
    archive = tmp_path / "model.tar.gz"
    assert command("export-model", model.id, str(archive)).code == 0
    back = json.loads(command("import-model", str(archive), "--name", "again", "--json").out)
    assert (back["name"], back["status"], back["imported_from"]) == (
        "again",
        "succeeded",
        "model.tar.gz",
    )


def test_an_import_says_whether_runs_take_it_by_default(
    command, stage: Stage, session: Session, tmp_path
) -> None:
    stage.conversations()
    archive = tmp_path / "theirs.tgz"
    assert command("export-model", stage.trained().id, str(archive)).code == 0
    words = command("import-model", str(archive)).out
    assert "Runs without --reward-model take this one from now on" in words
    assert "(theirs): succeeded" in words
    back = json.loads(command("import-model", str(archive), "--json").out)
    assert back["taken_by_default"] is True
    taken = command("run", "--task-model", "openai/small", "--no-wait").err
    assert f"Taking the newest reward model, {back['id']} (theirs)." in taken
    # Runs that go to Stash by the setting take one that is there.
    session.settings = replace(stage.settings, backend="stash")
    other = json.loads(command("import-model", str(archive), "--json").out)
    assert other["taken_by_default"] is False
    words = command("import-model", str(archive)).out
    assert "do not take this one. To use it, add --reward-model rm-" in words


@pytest.mark.parametrize(
    "arguments", [("export-model", "rm-9", "x.tar.gz"), ("import-model", "no")]
)
def test_a_model_that_is_not_there_is_refused(command, stage: Stage, arguments) -> None:
    said = command(*arguments)
    assert (said.code, said.err[:7]) == (1, "Error: ")


def test_on_a_terminal_a_bar_shows_the_phase_the_calls_and_the_best(
    command, stage: Stage, session: Session
) -> None:
    stage.conversations()
    stage.trained()
    terminal = io.StringIO()
    session.err = Console(file=terminal, force_terminal=True, width=160, highlight=False)

    def report(stage: Stage) -> None:
        [run] = stage.backend.list_runs()
        progress = {"phase": "scoring the seed", "done": 3, "total": 6, "metric_calls": 9}
        stage.report(run.id, **progress, seed_score=0.4, best_score=0.5)

    Worker(stage, session, Stage.begin, report, succeed_run)
    said = command("run", "--task-model", "openai/small")
    shown = terminal.getvalue()
    assert said.code == 0
    assert "scoring the seed" in shown
    assert "3/6, 9/120 calls, in-sample best 0.500 (seed 0.400)" in shown
    assert "Started." in shown
