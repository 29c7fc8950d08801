"""The watcher inside the server: finished skills are installed while a session is open."""

import logging
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from stash_mcp.errors import StashSkillsError

if TYPE_CHECKING:
    from stash_mcp.backends.base import Backend

# A client waits for its first answer; the watch loads its libraries after that.
HEAD_START_SECONDS = 3.0
LOOK_SECONDS = 5.0

logger = logging.getLogger(__name__)


def watch_in_background(
    backend: "Callable[[], Backend]", home: Path, head_start: float = HEAD_START_SECONDS
) -> threading.Event:
    """Watch the runs below `home`, and those of Stash that were started from here, in a thread that
    ends with the process; or when the event that is returned is set. Where there is no library it
    waits for one and makes none.
    """
    stop = threading.Event()
    thread = threading.Thread(
        target=_watch, args=(backend, home, stop, head_start), name="watcher", daemon=True
    )
    thread.start()
    return stop


def _watch(
    backend: "Callable[[], Backend]", home: Path, stop: threading.Event, head_start: float
) -> None:
    if stop.wait(head_start):
        return
    from stash_mcp.skills.watch import hints

    # Often, as the runs of Stash that it is time to look at are looked at then.
    for _ in hints(home / "runs", stop, poll_seconds=LOOK_SECONDS):
        if not (home / "library.db").exists():
            continue
        try:
            backend().reconcile()
        except StashSkillsError as error:
            logger.warning("The watcher could not look at the finished runs: %s", error)
