"""Looking at the unfinished runs of Stash that were started here, each when it is its time."""

from collections.abc import Callable
from typing import Protocol

from stash_mcp.errors import InputError, StashError, StashMisfitError, StashNotFoundError
from stash_mcp.models import Run
from stash_mcp.runs.remote import RemoteRuns

MISFIT_SECONDS = 600.0
"""Until a run that could not be read is looked at again. It seldom changes by itself."""


class Looked(Protocol):
    def get_run(self, run_id: str) -> Run:
        """As Stash tells it now, noted in the library."""


def follow(looked: Looked, remote_runs: RemoteRuns, has_key: Callable[[], bool]) -> None:
    """Look at those that are due. What cannot be reached is looked at again at its next time, and
    what cannot be read later; what this account does not know ever more seldom.
    """
    if not remote_runs.has_due() or not _is_set(has_key):
        return
    for run_id in remote_runs.claim_due():
        try:
            looked.get_run(run_id)
        except StashNotFoundError:
            remote_runs.lose(run_id)
        except StashMisfitError:
            remote_runs.postpone(run_id, MISFIT_SECONDS)
        except StashError as error:
            if error.retry_after is not None:
                remote_runs.postpone(run_id, error.retry_after)
            # The others would wait for the same in vain.
            return


def _is_set(has_key: Callable[[], bool]) -> bool:
    try:
        return has_key()
    except InputError:
        return False
