import json
import os
import signal
import subprocess
import sys

import pytest
from support.staging import Stage

from stash_mcp.cli.main import INTERRUPTED

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
