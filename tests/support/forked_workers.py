"""Real worker processes that start at once: forked from one that has loaded the libraries."""

import multiprocessing
from typing import Any

from stash_mcp.settings import Settings
from stash_mcp.storage.files import try_lock
from stash_mcp.worker import desk
from stash_mcp.worker import drain as drain_module
from stash_mcp.worker.drain import drain

PATIENCE_SECONDS = 60.0


def _work(settings: Settings, patience: float) -> None:
    desk.PATIENCE_SECONDS = desk.SHORT_PATIENCE_SECONDS = patience
    desk.POLL_SECONDS = 0.05
    # One whose job is cancelled would start the next as a process that loads everything anew.
    drain_module.spawn_worker = _start_none
    drain(settings)


def _start_none(_settings: Settings, *, wait: bool = False) -> None:
    pass


class Workers:
    """Starts a worker as the launcher does, unless one is alive; `patience`: how many seconds the
    next ones wait for the agent."""

    def __init__(self) -> None:
        self.patience = 600.0
        self.started: list[Any] = []
        self._context = multiprocessing.get_context("forkserver")
        self._context.set_forkserver_preload(["benchmarks.preloaded"])

    def start(self, settings: Settings) -> bool:
        with try_lock(settings.worker_lock_path) as free:
            if not free:
                return False
        process = self._context.Process(target=_work, args=(settings, self.patience))
        process.start()
        self.started.append(process)
        return True

    def kill(self) -> None:
        """SIGKILL to the newest."""
        self.started[-1].kill()
        self.wait()

    def wait(self) -> int | None:
        """Until the newest has ended; its exit code."""
        process = self.started[-1]
        process.join(PATIENCE_SECONDS)
        code: int | None = process.exitcode
        return code

    def end(self) -> None:
        for process in self.started:
            process.kill()
            process.join(PATIENCE_SECONDS)
