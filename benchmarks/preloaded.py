"""What forked workers start from: the libraries, loaded once.

Imported by the process that is forked, and by nobody else: from then on its garbage collector
leaves alone what it has, or every fork would copy all of it at its first collection.
"""

import gc

import stash_mcp.worker.run

assert stash_mcp.worker.run
gc.collect()
gc.freeze()
