"""Asking a process of its own that may load the heavy libraries."""

import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from typing import Any

from stash_mcp.redaction import redact
from stash_mcp.settings import secret_values, worker_environment

MARK = "stash-skills-probe:"
"""Begins the lines of the process's answer; libraries print others."""
_MODULE = "stash_mcp.worker.probe"
_WORDS = 300


class ProbeFailed(Exception):
    """The words are for a person."""


def probe(arguments: Sequence[str], seconds: float) -> list[Any]:
    """The values that the process answers, one a line; it is ended after `seconds`."""
    try:
        # Not in the person's folder, whose files a library may read.
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            done = subprocess.run(
                [sys.executable, "-m", _MODULE, *arguments],
                cwd=folder,
                env=worker_environment(),
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=seconds,
                check=False,
            )
    except subprocess.TimeoutExpired as error:
        raise ProbeFailed(f"no answer within {seconds:.0f} s") from error
    except OSError as error:
        raise ProbeFailed(error.strerror or str(error)) from error
    answers = [
        json.loads(line.removeprefix(MARK))
        for line in done.stdout.decode("utf-8", "replace").splitlines()
        if line.startswith(MARK)
    ]
    if not answers:
        words = redact(done.stderr.decode("utf-8", "replace").strip(), secret_values())
        raise ProbeFailed(words.rpartition("\n")[2][-_WORDS:] or f"it ended with {done.returncode}")
    return answers
