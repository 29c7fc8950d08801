"""Ending the server's process at once."""

import os
import signal
from types import FrameType
from typing import NoReturn

# Those that exist on this platform.
_SIGNALS = ("SIGINT", "SIGTERM", "SIGHUP", "SIGBREAK")


def leave_on_signals() -> None:
    """End on any of them with exit code 0, though tool calls are in progress. Nothing is lost:
    what is stored is stored whole, and jobs run in a process of their own.
    """
    for name in _SIGNALS:
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), _leave_on_signal)


def leave() -> NoReturn:
    # Standard error is written line by line; a flush would wait for a client that reads no more.
    os._exit(0)


def _leave_on_signal(_number: int, _frame: FrameType | None) -> NoReturn:
    leave()
