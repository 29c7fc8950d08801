"""Stash's side: the hosted service does the work, and keeps what it works on.

Nothing of this machine goes there but what a call of a method here is given.
"""

from stash_mcp.backends.stash.desk import FRESH_SECONDS, Surroundings
from stash_mcp.backends.stash.opening import BRIEF, PATIENT, Opener, StashDoor
from stash_mcp.backends.stash.runs import Runs

__all__ = [
    "BRIEF",
    "FRESH_SECONDS",
    "PATIENT",
    "Opener",
    "StashDoor",
    "StashSide",
    "Surroundings",
]


class StashSide(Runs):
    """All of `Side`, in parts that share what `Desk` holds."""
