"""Starting the worker: a process of its own that outlives whoever started it."""

import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TypedDict

from stash_mcp.redaction import redact
from stash_mcp.settings import Settings, secret_values, worker_environment
from stash_mcp.storage.files import os_errors, private_dir, try_lock

AT_THE_QUEUE = "The worker has come to the queue."
"""The first line of a worker's output, unless it could not start."""
_WORDLESS_SECONDS = 15.0
_SETTLING_SECONDS = 1.0
_SAID_CHARACTERS = 400


@dataclass(frozen=True)
class LastStart:
    """alive: a worker is. failure: what the last one said, if it never came to the queue.
    is_fresh: it was started just now, and has not got that far.
    """

    alive: bool = False
    failure: str | None = None
    is_fresh: bool = False


class _Detached(TypedDict, total=False):
    creationflags: int
    start_new_session: bool


def ensure_worker(settings: Settings) -> bool:
    """Start a worker unless one is alive. Returns whether one was started.

    To be called after the job is in the library. A worker that is about to go looks at the queue
    once more after it has dropped its lock, so either we find the lock free or it finds the job.
    """
    with try_lock(settings.worker_lock_path) as free:
        if not free:
            return False
    spawn_worker(settings)
    return True


def spawn_waiting_worker(settings: Settings) -> None:
    """Start a worker with this process's environment that waits while another one is alive.

    A living worker has the environment of whoever started it, which may lack a key that is here.
    Keys are never stored, so only a process can hand them on.
    """
    spawn_worker(settings, wait=True)


def spawn_worker(settings: Settings, *, wait: bool = False) -> None:
    """Start a worker, which leaves again where another one stays alive, or waits for its end."""
    home = settings.home
    log = worker_log(settings)
    private_dir(home)
    command = [sys.executable, "-m", "stash_mcp.worker", "--home", str(home)]
    command += ["--wait"] if wait else []
    with os_errors("open", log), log.open("ab" if wait else "wb") as output:
        log.chmod(0o600)
        with os_errors("start a worker with", Path(sys.executable)):
            process = subprocess.Popen(
                command,
                cwd=home,
                env=worker_environment(),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                **_detached(),
            )
    # Takes note of its end if we are still there then, so that no zombie stays.
    threading.Thread(target=process.wait, name="worker-reaper", daemon=True).start()


def worker_log(settings: Settings) -> Path:
    """The output of the last worker's process; what a job does is in the job's own log."""
    return settings.home / "worker.log"


def last_start(settings: Settings) -> LastStart:
    """What became of the worker that was started last."""
    with try_lock(settings.worker_lock_path) as free:
        if not free:
            return LastStart(alive=True)
    log = worker_log(settings)
    try:
        said = log.read_bytes().decode("utf-8", errors="replace")
        age = time.time() - log.stat().st_mtime
    except OSError:
        return LastStart()
    if AT_THE_QUEUE in said:
        return LastStart()
    said = redact(said.strip(), secret_values())
    if age < (_SETTLING_SECONDS if said else _WORDLESS_SECONDS):
        return LastStart(is_fresh=True)
    last_line = said.rpartition("\n")[2][-_SAID_CHARACTERS:]
    return LastStart(failure=last_line or "it ended without a word.")


def _detached() -> _Detached:
    """No signal to the client's process group, and no closed console, reaches the worker."""
    if sys.platform == "win32":
        return {"creationflags": subprocess.DETACHED_PROCESS | subprocess.CREATE_NEW_PROCESS_GROUP}
    return {"start_new_session": True}
