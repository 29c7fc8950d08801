"""Both sides at once: what is at Stash brought here to be used with one's own keys and models, and
what is here sent there. The one place that sends what the library holds without being told so for
a single call; it does that in `push` alone.
"""

from stash_mcp.backends.hybrid.opening import open_hybrid
from stash_mcp.backends.hybrid.report import Counts, Held, SyncReport
from stash_mcp.backends.hybrid.rescoring import Rescore, rescore
from stash_mcp.backends.hybrid.syncing import Hybrid

__all__ = ["Counts", "Held", "Hybrid", "Rescore", "SyncReport", "open_hybrid", "rescore"]
