"""Keeping standard output clean until the SDK does: it diverts it only while it serves."""

import contextlib
import os
import sys
from collections.abc import Iterator

_OUTPUT, _ERROR = 1, 2


@contextlib.contextmanager
def standard_output_diverted() -> Iterator[None]:
    """What anybody prints meanwhile goes to standard error. Where one of the two is closed,
    nothing is diverted.
    """
    sys.stdout.flush()
    with contextlib.ExitStack() as ending:
        with contextlib.suppress(OSError):
            kept = os.dup(_OUTPUT)
            ending.callback(os.close, kept)
            os.dup2(_ERROR, _OUTPUT)
            ending.callback(os.dup2, kept, _OUTPUT)
        yield
        sys.stdout.flush()
