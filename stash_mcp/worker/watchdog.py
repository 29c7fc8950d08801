"""A thread beside the job: it beats for it, and ends the process when the job was cancelled.

A job is safe against a kill at any moment, so a cancelled one is simply killed: no call that is
under way, no step of a training and no library has to cooperate.
"""

import logging
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from stash_mcp.errors import StashSkillsError
from stash_mcp.models import JobStatus
from stash_mcp.optimization.commands import end_commands
from stash_mcp.runs.store import JobStore
from stash_mcp.worker.logs import LOG

BEAT_SECONDS = 0.5


@contextmanager
def watched(store: JobStore, job_id: str, before_exit: Callable[[], None]) -> Iterator[None]:
    """Watch the job for the block; where it is cancelled call `before_exit` and end the process."""
    over = threading.Event()
    thread = threading.Thread(
        target=_watch, args=(store, job_id, before_exit, over), name="watchdog", daemon=True
    )
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def _watch(
    store: JobStore, job_id: str, before_exit: Callable[[], None], over: threading.Event
) -> None:
    while not over.wait(BEAT_SECONDS):
        try:
            status = store.beat(job_id)
        except StashSkillsError as error:
            # A full disk or a busy library passes, or the job itself fails on it.
            LOG.warning("no heartbeat: %s", error)
            continue
        # Cancelled, and perhaps queued again since: in both cases it is not ours any more.
        if status is not JobStatus.RUNNING:
            LOG.info("cancelled")
            logging.shutdown()
            end_commands()
            before_exit()
            os._exit(0)
