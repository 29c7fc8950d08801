import json
import os
import signal
import subprocess
import sys

import pytest
from support.staging import Stage

from stash_mcp.cli.main import INTERRUPTED
from stash_mcp.errors import DiskFullError, LibraryBusyError

PATIENCE_SECONDS = 20

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


WATCH = """
import signal, sys
from stash_mcp.cli.main import main
# A background process of a shell is started with Ctrl-C ignored.
signal.signal(signal.SIGINT, signal.default_int_handler)
sys.exit(main(["watch"]))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="needs SIGINT")
def test_ctrl_c_ends_the_watch(stage: Stage) -> None:
    (stage.settings.home / "runs").mkdir(exist_ok=True)
    with subprocess.Popen(
        [sys.executable, "-c", WATCH],
        env={**os.environ, "STASH_MCP_HOME": str(stage.settings.home)},
        stderr=subprocess.PIPE,
        text=True,
    ) as watch:
        assert watch.stderr is not None
        assert "Ctrl-C ends it" in watch.stderr.readline()
        watch.send_signal(signal.SIGINT)
        assert watch.wait(PATIENCE_SECONDS) == INTERRUPTED


def test_the_watch_outlives_its_home_and_goes_on_when_that_returns(
    command, stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = stage.settings.home
    away = home.with_name("away")

    def looks(*_arguments: object, **_options: object):
        home.rename(away)
        yield from (None, None)
        assert not home.exists()
        away.rename(home)
        stage.finished(*BETTER)
        yield None

    monkeypatch.setattr("stash_mcp.cli.watching.hints", looks)
    said = command("watch")
    assert said.code == 0
    assert "is installed" in said.out
    assert said.err.count("is not there now; waiting for it.") == 1
    assert said.err.count("watching goes on") == 1


def test_the_watch_says_once_what_it_cannot_do_and_looks_again(
    command, stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, refused = stage.backend.reconcile, []

    def busy(**options: bool):
        if len(refused) < 3:
            refused.append(options)
            raise LibraryBusyError("Another process writes.", "Wait.")
        return real(**options)

    def looks(*_arguments: object, **_options: object):
        monkeypatch.setattr(stage.backend, "reconcile", busy)
        stage.finished(*BETTER)
        yield from [None] * 4

    monkeypatch.setattr("stash_mcp.cli.watching.hints", looks)
    said = command("watch")
    assert said.err.count("Looked in vain, and will look again: Another process writes.") == 1
    assert "is installed" in said.out


def test_starting_the_watch_tries_again_at_once_what_was_put_off(
    command, stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage.finished(*BETTER)
    with monkeypatch.context() as full:
        full.setattr("stash_mcp.skills.install.write", disk_full)
        assert "No space left" in command("watch", "--once").out
    assert "is installed" in command("watch", "--once").out


def test_following_a_run_ends_where_its_installation_is_put_off(
    command, stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = stage.finished(*BETTER)
    monkeypatch.setattr("stash_mcp.skills.install.write", disk_full)
    assert "not installed yet: No space left" in command("status", run.id, "--follow").out


def disk_full(*_arguments: object) -> None:
    raise DiskFullError("No space left.", "Free some.")
