"""Where a command writes what the person named, and what it does not write over."""

from pathlib import Path
from typing import Annotated

import typer

from stash_mcp.errors import StorageError

Force = Annotated[bool, typer.Option("--force", help="Replace FILE if it is there.")]


def refuse_a_file_that_is_there(path: Path, *, force: bool) -> None:
    """Pipes and devices are written into, and so are not asked about."""
    if not force and path.is_file():
        raise StorageError(
            f"{path} is there already, and was left as it is.",
            "Name another file, or replace this one with --force.",
        )
