"""Starting the worker: a process of its own that outlives whoever started it."""

import subprocess
import sys
import threading
from typing import TypedDict

from stash_mcp.settings import Settings, worker_environment
from stash_mcp.storage.files import os_errors, private_dir, try_lock


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
    log = private_dir(home) / "worker.log"
    command = [sys.executable, "-m", "stash_mcp.worker", "--home", str(home)]
    command += ["--wait"] if wait else []
    with os_errors("open", log), log.open("ab" if wait else "wb") as output:
        log.chmod(0o600)
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


def _detached() -> _Detached:
    """No signal to the client's process group, and no closed console, reaches the worker."""
    if sys.platform == "win32":
        return {"creationflags": subprocess.DETACHED_PROCESS | subprocess.CREATE_NEW_PROCESS_GROUP}
    return {"start_new_session": True}
