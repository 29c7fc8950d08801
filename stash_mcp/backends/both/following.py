"""Looking at the unfinished runs of Stash that were started here, each when it is its time."""

from collections.abc import Callable
from typing import Protocol

from stash_mcp.errors import InputError, StashError, StashNotFoundError
from stash_mcp.models import Run
from stash_mcp.runs.remote import RemoteRuns


class Looked(Protocol):
    def get_run(self, run_id: str) -> Run:
        """As Stash tells it now, noted in the library."""


def follow(looked: Looked, remote_runs: RemoteRuns, has_key: Callable[[], bool]) -> None:
    """Look at those that are due. What cannot be reached is looked at again at its next time; what
    this account does not know is given up.
    """
    if not remote_runs.has_due() or not _is_set(has_key):
        return
    for run_id in remote_runs.claim_due():
        try:
            looked.get_run(run_id)
        except StashNotFoundError:
            remote_runs.lose(run_id)
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
