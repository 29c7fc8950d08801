"""`python -m stash_mcp.doctor.install_process HOME -- COMMAND...`: started by `installing`.

Holds the lock while the installer works, and notes how it ended.
"""

import subprocess
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from stash_mcp.doctor.installing import InstallRecord, lock_path, write_record
from stash_mcp.storage.files import try_lock

_LOCK_SECONDS = 5.0
_COULD_NOT_START = 127


def main(arguments: Sequence[str]) -> int:
    home, command = Path(arguments[0]), list(arguments[2:])
    started_at = datetime.now(UTC)
    # A look at the state holds the lock for a moment.
    with try_lock(lock_path(home), timeout=_LOCK_SECONDS) as ours:
        if not ours:
            return 0
        code = _run(command)
        ended = InstallRecord(started_at=started_at, ended_at=datetime.now(UTC), code=code)
        write_record(home, ended)
    return code


def _run(command: Sequence[str]) -> int:
    try:
        return subprocess.run(command, stdin=subprocess.DEVNULL, check=False).returncode
    except OSError as error:
        sys.stderr.write(f"{command[0]} cannot be started: {error.strerror or error}\n")
        return _COULD_NOT_START


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
