import json

import pytest
from support.staging import Stage

from stash_mcp.backends.local import housekeeping
from stash_mcp.cli.session import Session


def test_the_whole_log_is_printed_whatever_its_length(
    command, stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Smaller than a character of the text in places, so that parts end within one.
    monkeypatch.setattr(housekeeping, "LOG_PART_BYTES", 5)
    run = stage.running()
    text = "".join(f"line {number}: Grüße 世界 🚲\n" for number in range(40))
    stage.write_log(run.id, text)
    assert command("logs", run.id).out == text
    assert json.loads(command("logs", run.id, "--json").out) == {"id": run.id, "log": text}


def test_following_goes_on_until_the_job_is_over(command, stage: Stage, session: Session) -> None:
    run = stage.running()
    stage.write_log(run.id, "begun\n")
    pauses: list[float] = []

    def work(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 1:
            stage.write_log(run.id, "half")
        else:
            stage.write_log(run.id, " done\n")
            stage.store.fail(run.id, reason="The key was refused.", error="")

    session.sleep = work
    said = command("logs", run.id, "-f")
    assert (said.code, said.out, len(pauses)) == (0, "begun\nhalf done\n", 2)


def test_a_log_that_was_replaced_meanwhile_is_read_from_its_start(
    command, stage: Stage, session: Session
) -> None:
    run = stage.running()
    stage.write_log(run.id, "an old and long line\n")

    def rotate(_seconds: float) -> None:
        (stage.settings.runs_dir / run.id / "worker.log").unlink()
        stage.write_log(run.id, "new\n")
        stage.backend.cancel(run.id)

    session.sleep = rotate
    assert command("logs", run.id, "--follow").out == "an old and long line\nnew\n"


def test_ctrl_c_ends_the_following_and_leaves_the_run_alone(
    command, stage: Stage, session: Session
) -> None:
    run = stage.running()

    def interrupt(_seconds: float) -> None:
        raise KeyboardInterrupt

    session.sleep = interrupt
    assert command("logs", run.id, "-f").code == 130
    assert stage.backend.get_run(run.id).status == "running"


def test_a_job_without_a_log_says_so(command, stage: Stage) -> None:
    stage.conversations()
    model = stage.train()
    said = command("logs", model.id)
    assert (said.code, said.out) == (0, "")
    assert f"There is no log of {model.id}" in said.err


def test_a_log_cannot_steer_the_terminal(command, stage: Stage) -> None:
    run = stage.running()
    stage.write_log(run.id, "\x1b]0;owned\x07 [bold]x[/bold]\n")
    assert command("logs", run.id).out == "\\x1b]0;owned\\x07 [bold]x[/bold]\n"
