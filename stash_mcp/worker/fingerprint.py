"""What a run depends on, written beside it when it first starts and compared when it carries on.

A run that is carried on with other data, models, settings or libraries would be another run under
the first one's name.
"""

import hashlib
import json
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from pydantic import ValidationError

from stash_mcp.errors import RunError
from stash_mcp.models import RunRequest
from stash_mcp.runs.folder import JobFolder
from stash_mcp.storage.files import read_text, write_json

# Those that decide what a run does, down to the last digit of a score.
_LIBRARIES = ("gepa", "litellm", "torch", "transformers", "stash-skills")
_CHUNK_BYTES = 1024 * 1024


def checkpoint_digest(folder: Path) -> str:
    """SHA-256 over the names and contents of a checkpoint's files."""
    digest = hashlib.sha256()
    for path in sorted(folder.iterdir()):
        digest.update(path.name.encode() + b"\0")
        with path.open("rb") as file:
            while chunk := file.read(_CHUNK_BYTES):
                digest.update(chunk)
    return digest.hexdigest()


def check_fingerprint(folder: JobFolder, request: RunRequest, checkpoint: str) -> None:
    """Write the run's fingerprint if there is none; else refuse a difference, with both values."""
    now = _fingerprint(folder, request, checkpoint)
    if not folder.fingerprint_path.exists():
        write_json(folder.fingerprint_path, now)
        return
    then = json.loads(read_text(folder.fingerprint_path))
    for part, value in now.items():
        if not _same(part, then.get(part), value):
            raise RunError(
                f"The run cannot be carried on: its {part} was {then.get(part)} when it started "
                f"and is {value} now.",
                "Start it again; answers that are still good are not paid again.",
            )


def _same(part: str, then: str | None, now: str) -> bool:
    if then == now or then is None or part != "settings":
        return then == now
    try:
        # What an earlier version wrote has other names, and lacks what came since.
        return RunRequest.model_validate_json(then) == RunRequest.model_validate_json(now)
    except ValidationError:
        return False


def _fingerprint(folder: JobFolder, request: RunRequest, checkpoint: str) -> dict[str, str]:
    settings = json.dumps(request.model_dump(mode="json"), sort_keys=True)
    return {
        "data": hashlib.sha256(folder.examples_path.read_bytes()).hexdigest(),
        "reward model": checkpoint,
        "settings": settings,
        **{f"version of {name}": _version(name) for name in _LIBRARIES},
    }


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "unknown"
