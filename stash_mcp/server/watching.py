"""The watcher inside the server: finished skills are installed while a session is open."""

import logging
import threading
from collections.abc import Callable
from pathlib import Path

from stash_mcp.backends.base import Backend
from stash_mcp.errors import StashSkillsError

# A client waits for its first answer; the watch loads its libraries after that.
HEAD_START_SECONDS = 3.0

logger = logging.getLogger(__name__)


def watch_in_background(
    backend: Callable[[], Backend], home: Path, head_start: float = HEAD_START_SECONDS
) -> threading.Event:
    """Watch the runs below `home` in a thread that ends with the process; or when the event that
    is returned is set. Where there is no library it waits for one and makes none.
    """
    stop = threading.Event()
    thread = threading.Thread(
        target=_watch, args=(backend, home, stop, head_start), name="watcher", daemon=True
    )
    thread.start()
    return stop


def _watch(
    backend: Callable[[], Backend], home: Path, stop: threading.Event, head_start: float
) -> None:
    if stop.wait(head_start):
        return
    from stash_mcp.skills.watch import hints

    runs = home / "runs"
    for _ in hints(runs, stop):
        if not runs.is_dir():
            continue
        try:
            backend().reconcile()
        except StashSkillsError as error:
            logger.warning("The watcher could not look at the finished runs: %s", error)
