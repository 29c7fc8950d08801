"""Stash over REST: one HTTP connection, the calls of its contract, and its errors in our words.

Covered: what Stash offers for traces, annotations, reward models and GEPA runs. Not covered: how a
backend or the library uses it, and unpacking a checkpoint.
"""

from stash_mcp.stash.client import StashClient, open_client
from stash_mcp.stash.http_client import Limits
from stash_mcp.stash.weights import download_weights

__all__ = ["Limits", "StashClient", "download_weights", "open_client"]
