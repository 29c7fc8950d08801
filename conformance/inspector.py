"""The Inspector's own strict reading of the list of tools, from a server on stdio."""

import json
import subprocess
from collections.abc import Mapping, Sequence

from conformance.serving import SERVE, whole

NAME = "inspector --cli --method tools/list --strict"
_PATIENCE = 180


def listed_tools(
    inspector: Sequence[str], environment: Mapping[str, str], server: Sequence[str] = SERVE
) -> tuple[int, str]:
    """How many tools it found in good order, and what it said where that was not all."""
    command = [*inspector, "--cli", *server, "--method", "tools/list", "--strict"]
    try:
        ended = subprocess.run(
            command,
            env=whole(environment),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=_PATIENCE,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return 0, f"It did not end within {_PATIENCE} s."
    if ended.returncode != 0:
        return 0, f"It ended with {ended.returncode}: {ended.stderr or ended.stdout}"
    tools = len(json.loads(ended.stdout)["tools"])
    return tools, "" if tools else "It listed no tools."
