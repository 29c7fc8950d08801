"""A server's command with a tap on its standard output: what it wrote is in a file, too."""

import json
import sys
from pathlib import Path

_TAP = """
import subprocess, sys
with open(sys.argv[1], "ab") as log:
    server = subprocess.Popen(sys.argv[2:], stdout=subprocess.PIPE)
    for line in server.stdout:
        log.write(line)
        log.flush()
        sys.stdout.buffer.write(line)
        sys.stdout.buffer.flush()
sys.exit(server.wait())
"""


def tapped(command: list[str], log: Path) -> list[str]:
    """The command that runs `command` and copies its standard output into `log`."""
    return [sys.executable, "-c", _TAP, str(log), *command]


def assert_messages_alone(log: Path) -> None:
    lines = log.read_bytes().splitlines()
    assert lines
    for line in lines:
        assert json.loads(line)["jsonrpc"] == "2.0"
