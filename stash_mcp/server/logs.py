"""What the server's process says of itself, on standard error."""

import logging
import logging.handlers
import queue

_FORMAT = "%(levelname)s %(name)s: %(message)s"
_LINES_WAITING = 1000


def log_plainly() -> None:
    """Warnings and errors as lines of text; to be called before a server of the SDK is made.

    The SDK would take rich's handler, which spends up to seconds on drawing a traceback, in the
    event loop. A client may not read standard error at all: then what is logged waits in a thread,
    and beyond that is dropped, while the server goes on.
    """
    root = logging.getLogger()
    if root.handlers:
        return
    out = logging.StreamHandler()
    out.setFormatter(logging.Formatter(_FORMAT))
    waiting: queue.Queue[logging.LogRecord] = queue.Queue(_LINES_WAITING)
    root.addHandler(_Dropping(waiting))
    root.setLevel(logging.WARNING)
    # Python's own warnings would be written from where they arise.
    logging.captureWarnings(True)
    logging.handlers.QueueListener(waiting, out).start()


class _Dropping(logging.handlers.QueueHandler):
    def enqueue(self, record: logging.LogRecord) -> None:
        try:
            self.queue.put_nowait(record)
        except queue.Full:
            return
