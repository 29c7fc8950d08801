"""`python -m stash_mcp` is the command `stash-skills`."""

import sys

from stash_mcp.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
