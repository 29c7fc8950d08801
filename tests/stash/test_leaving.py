"""A process that ends without closing its client ends all the same."""

import subprocess
import sys

from stand_in_stash import StandIn
from support.stash_calls import conversations

from stash_mcp.stash import StashClient

LEAVES = """
import sys, threading
from stash_mcp.settings import StashAccess
from stash_mcp.stash import open_client
client = open_client(StashAccess(sys.argv[1], sys.argv[2], "a test", "a test"))
export = client.export_traces()
next(export)
waiting = threading.Thread(target=client.list_runs, daemon=True)
waiting.start()
print("leaving")
"""


def test_a_process_leaves_with_an_export_half_read_and_a_request_under_way(
    client: StashClient, stash: StandIn
) -> None:
    client.import_traces(conversations(2000))
    done = subprocess.run(
        [sys.executable, "-X", "dev", "-c", LEAVES, stash.base_url, stash.key],
        capture_output=True,
        text=True,
        timeout=30,
    )
    assert (done.returncode, done.stdout) == (0, "leaving\n")
