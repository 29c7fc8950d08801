"""Cancelling, carrying on, and Ctrl-C while following."""

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support.staging import Stage, result

from stash_mcp.cli.following import SECOND_CTRL_C_SECONDS
from stash_mcp.cli.session import Session
from stash_mcp.models import JobStatus
from stash_mcp.storage.files import try_lock

ROOT = Path(__file__).parents[2]
SCORED = (("Be polite.", 0.4), ("Ask for the order number.", 0.6))
# Of the process to end; the wait that it cuts short is 3 s.
PATIENCE = 30


def test_a_cancelled_run_keeps_its_candidates_marked_as_partial(command, stage: Stage) -> None:
    run = stage.running(*SCORED)
    said = command("cancel", run.id)
    assert said.code == 0
    assert f"Cancelled {run.id}. Candidate 1, the best so far, stays usable" in said.err
    assert "A partial result" in said.out
    for next_step in ("candidates", "install", "resume"):
        assert f"stash-skills {next_step} {run.id}" in said.err
    listed = command("candidates", run.id)
    assert "A partial result" in listed.err
    assert [row["partial"] for row in json.loads(command("candidates", run.id, "--json").out)] == [
        True,
        True,
    ]
    assert json.loads(command("candidates", run.id, "--show", "1", "--json").out)["partial"]
    installed = command("install", run.id)
    assert (installed.code, "A partial result" in installed.out) == (0, True)
    assert json.loads(command("install", run.id, "--json").out)["partial"] is True


def test_the_candidates_of_a_whole_run_are_not_partial(command, stage: Stage) -> None:
    run = stage.finished(*SCORED)
    assert not json.loads(command("candidates", run.id, "--json").out)[0]["partial"]
    installed = command("install", run.id)
    assert "partial" not in installed.out + command("candidates", run.id).err


def test_a_queued_run_is_cancelled_before_anything_is_scored(command, stage: Stage) -> None:
    stage.conversations()
    run = stage.start(stage.trained().id)
    cancelled = json.loads(command("cancel", run.id, "--json").out)
    assert (cancelled["status"], cancelled["partial"]) == ("cancelled", False)
    assert cancelled["stop_reason"] == "cancelled"
    assert stage.store.claim_next() is None


def test_a_training_is_cancelled_by_the_same_command(command, stage: Stage) -> None:
    stage.conversations()
    model = stage.train()
    stage.begin()
    said = command("cancel", model.id)
    assert said.code == 0
    assert f"Cancelled {model.id}.\n" in said.err
    assert stage.backend.get_reward_model(model.id).status == "cancelled"


@pytest.mark.parametrize(
    ("over", "ending"),
    [
        (Stage.finished, "had succeeded"),
        (Stage.failed, "had failed"),
        (Stage.cancelled, "had been cancelled before"),
    ],
)
def test_what_is_over_is_left_as_it_is(
    command, stage: Stage, over: Callable[..., object], ending: str
) -> None:
    over(stage, *SCORED)
    [before] = stage.backend.list_runs()
    said = command("cancel", before.id)
    assert said.code == 0
    assert f"There was nothing to cancel: {before.id} {ending}." in said.err
    assert stage.backend.list_runs() == [before]


@pytest.mark.parametrize("stopped", [Stage.failed, Stage.cancelled])
def test_a_run_is_carried_on_and_followed_to_its_end(
    command, stage: Stage, session: Session, stopped: Callable[..., object]
) -> None:
    stopped(stage, *SCORED)
    [run] = stage.backend.list_runs()
    steps: Iterator[Callable[[], object]] = iter(
        [stage.begin, lambda: stage.store.succeed(run.id, json.dumps(result(SCORED)))]
    )
    session.sleep = lambda _seconds: next(steps)() and None
    said = command("resume", run.id)
    assert said.code == 0, said.err
    assert f"{run.id} is in the queue again; nothing is paid twice." in said.err
    assert "The skill helped; how far is uncertain." in said.out


def test_carrying_on_without_waiting_returns_the_queued_run(command, stage: Stage) -> None:
    run = stage.failed()
    assert f"stash-skills resume {run.id}" in command("status", run.id).err
    assert json.loads(command("resume", run.id, "--no-wait", "--json").out)["status"] == "queued"


def test_a_run_that_succeeded_is_not_carried_on(command, stage: Stage) -> None:
    run = stage.finished(*SCORED)
    said = command("resume", run.id)
    assert said.code == 1
    assert "only a failed or cancelled one is resumed" in said.err


@pytest.mark.parametrize("name", ["cancel", "logs"])
def test_an_unknown_id_of_a_job_is_refused_with_both_lists(command, name: str) -> None:
    said = command(name, "run-9")
    assert said.code == 1
    assert "There is no run and no reward model 'run-9'." in said.err


def test_an_unknown_run_is_not_carried_on(command) -> None:
    assert "There is no run 'run-9'." in command("resume", "run-9").err


# --- Ctrl-C while following ---


class Keyboard:
    """Presses Ctrl-C at each pause that `pressed` says so for; keeps how long the pauses were."""

    def __init__(self, session: Session, *pressed: bool) -> None:
        self.pauses: list[float] = []
        self._pressed = iter(pressed)
        session.sleep = self

    def __call__(self, seconds: float) -> None:
        self.pauses.append(seconds)
        if next(self._pressed):
            raise KeyboardInterrupt


def test_ctrl_c_leaves_the_run_to_itself_and_says_how_to_cancel_it_and_look_again(
    command, stage: Stage, session: Session
) -> None:
    run = stage.running()
    keyboard = Keyboard(session, False, True, False)
    said = command("status", run.id, "--follow")
    assert (said.code, stage.backend.get_run(run.id).status) == (130, JobStatus.RUNNING)
    assert f"Detached; {run.id} goes on. Press Ctrl-C again within 3 s to cancel it" in said.err
    assert f"stash-skills cancel {run.id}\n" in said.err
    assert f"stash-skills status {run.id} --follow" in said.err
    assert keyboard.pauses[-1] == SECOND_CTRL_C_SECONDS


def test_a_second_ctrl_c_cancels(command, stage: Stage, session: Session) -> None:
    run = stage.running(*SCORED)
    Keyboard(session, True, True)
    said = command("status", run.id, "--follow", "--json")
    assert (said.code, said.out) == (130, "")
    assert stage.backend.get_run(run.id).status is JobStatus.CANCELLED
    assert f"Cancelled {run.id}. Candidate 1, the best so far" in said.err


def test_a_second_ctrl_c_cancels_a_training_too(command, stage: Stage, session: Session) -> None:
    stage.conversations()
    Keyboard(session, True, True)
    assert command("train").code == 130
    assert stage.backend.list_reward_models()[0].status is JobStatus.CANCELLED


# A job in the background of a shell ignores SIGINT and hands that on; a terminal's does not.
LISTENING = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
from stash_mcp.cli.main import main
sys.exit(main())
"""


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no signals for processes")
def test_two_signals_to_the_real_command_detach_it_and_cancel_the_run(stage: Stage) -> None:
    run = stage.running(*SCORED)
    environment = {
        **os.environ,
        "STASH_MCP_HOME": str(stage.settings.home),
        "PYTHONPATH": str(ROOT),
    }
    # The worker's lock is ours, so that none is started.
    with (
        try_lock(stage.settings.worker_lock_path) as held,
        subprocess.Popen(
            [sys.executable, "-c", LISTENING, "status", run.id, "--follow"],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as process,
    ):
        assert held
        assert process.stderr is not None
        # However this goes, the process must not outlive it.
        guard = threading.Timer(PATIENCE, process.kill)
        guard.start()
        # A line that was interrupted while it was printed may come twice.
        for begins in ("Started.", f"Detached; {run.id} goes on."):
            assert any(line.startswith(begins) for line in process.stderr)
            process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=PATIENCE)
        guard.cancel()
    assert (process.returncode, out) == (130, "")
    assert f"Cancelled {run.id}. Candidate 1" in err
    assert "Traceback" not in err
    assert stage.backend.get_run(run.id).status is JobStatus.CANCELLED
