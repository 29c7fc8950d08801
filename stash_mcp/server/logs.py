"""What the server's process says of itself, on standard error."""

import logging

_FORMAT = "%(levelname)s %(name)s: %(message)s"


def log_plainly() -> None:
    """Warnings and errors as lines of text; to be called before a server of the SDK is made.

    The SDK would take rich's handler, which spends up to seconds on drawing a traceback, in the
    event loop.
    """
    logging.basicConfig(level=logging.WARNING, format=_FORMAT)
