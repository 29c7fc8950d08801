"""When to look again: events of a folder as hints, and a regular look where none arrive.

The look decides; an event only says that it is time for one, and doing it twice changes nothing.
The first hint comes once the watch is primed, so that nothing between is missed. A folder that is
missing, removed or made again is looked for at every interval, and one that cannot be watched (the
system has no more watches to give) is looked at as often.
"""

import threading
import time
from collections.abc import Iterator
from pathlib import Path

from watchfiles import Change, watch

POLL_SECONDS = 30
"""Between looks without an event: network folders and containers send none."""
MISSING_SECONDS = 2.0
_DEBOUNCE_MS = 200
_STEP_MS = 50
"""A change is told of one to two steps later; twenty wake-ups a second cost nothing measurable."""
_LOOK_AGAIN_SECONDS = (0.1, 0.2, 0.4)
"""After an event: a result is on disk a moment before the library says that its run is over."""


def hints(
    folder: Path, stop: threading.Event, poll_seconds: float = POLL_SECONDS
) -> Iterator[None]:
    """Yields whenever something may have changed below `folder`, until `stop` is set."""
    while not stop.is_set():
        if not folder.is_dir():
            yield None
            stop.wait(min(MISSING_SECONDS, poll_seconds))
            continue
        yield from _watched(folder, stop, poll_seconds)


def _watched(folder: Path, stop: threading.Event, poll_seconds: float) -> Iterator[None]:
    """Until the folder is removed, which makes a watch deaf."""
    primed, again, looked_at = False, False, 0.0
    try:
        for changes in watch(
            folder,
            # The default filter drops everything below .git, node_modules and the like.
            watch_filter=None,
            debounce=_DEBOUNCE_MS,
            step=_STEP_MS,
            stop_event=stop,
            rust_timeout=int(min(poll_seconds, MISSING_SECONDS) * 1000),
            yield_on_timeout=True,
        ):
            if (Change.deleted, str(folder)) in changes or not folder.is_dir():
                return
            due = time.monotonic() - looked_at >= poll_seconds
            if changes or again or not primed or due:
                primed, again, looked_at = True, bool(changes), time.monotonic()
                yield None
            for pause in _LOOK_AGAIN_SECONDS if changes else ():
                stop.wait(pause)
                yield None
    except FileNotFoundError:
        return
    except (OSError, RuntimeError):  # of the second kind are its internal errors
        yield None
        stop.wait(min(MISSING_SECONDS, poll_seconds))
