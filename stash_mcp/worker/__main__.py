"""`python -m stash_mcp.worker --home FOLDER`: started by the launcher, not by hand."""

import argparse
import dataclasses
import sys
from pathlib import Path

from stash_mcp.runs.launcher import AT_THE_QUEUE
from stash_mcp.settings import load_settings
from stash_mcp.worker.drain import drain


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m stash_mcp.worker")
    parser.add_argument("--home", type=Path, required=True)
    parser.add_argument("--wait", action="store_true", help="for another worker to end")
    arguments = parser.parse_args()
    settings = dataclasses.replace(load_settings(), home=arguments.home)
    drain(settings, wait=arguments.wait, on_arrival=_Arrival())
    return 0


class _Arrival:
    """Says once, in the process's output, that it could start."""

    def __init__(self) -> None:
        self._said = False

    def __call__(self) -> None:
        if not self._said:
            self._said = True
            sys.stdout.write(f"{AT_THE_QUEUE}\n")
            sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
