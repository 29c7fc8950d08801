"""Folders, the disk, and what computes."""

import contextlib
import os
import shutil
import tempfile
from pathlib import Path

from pydantic import ValidationError

from stash_mcp.backends.extras import has_extra
from stash_mcp.doctor.probing import ProbeFailed, probe
from stash_mcp.doctor.report import Check, not_checked, ok, problem, warning
from stash_mcp.models import Frozen
from stash_mcp.settings import Settings
from stash_mcp.storage.files import write_atomic

_TRAINING_BYTES = 6 * 1000**3
_LEAST_BYTES = 200 * 1000**2
_GB = 1000**3
_GPU_SECONDS = 50.0


def home(settings: Settings) -> Check:
    """Whether our data can be written, tried out with a file that goes again."""
    folder = settings.home
    if not folder.exists():
        return _to_be_made(folder)
    refusal = _refusal(folder)
    if refusal is None:
        return ok("home", f"{folder} can be written.")
    return problem(
        "home",
        f"{folder} cannot be written: {refusal}.",
        "Correct its permissions, or set STASH_MCP_HOME to another folder.",
    )


def _to_be_made(folder: Path) -> Check:
    above = next(path for path in folder.parents if path.exists())
    if above.is_dir() and os.access(above, os.W_OK | os.X_OK):
        return ok("home", f"{folder} is made when it is first needed.")
    return problem(
        "home",
        f"{folder} is not there, and {above} cannot be written.",
        "Correct its permissions, or set STASH_MCP_HOME to another folder.",
    )


def _refusal(folder: Path) -> str | None:
    try:
        with tempfile.TemporaryFile(dir=folder, prefix=".stash-skills-"):
            return None
    except OSError as error:
        return error.strerror or str(error)


def disk(settings: Settings) -> Check:
    above = next(path for path in (settings.home, *settings.home.parents) if path.exists())
    try:
        free = shutil.disk_usage(above).free
    except OSError as error:
        return not_checked("disk", f"{above} cannot be looked at: {error.strerror or error}.")
    said = f"{free / _GB:.1f} GB free at {above}."
    fix = "Make room: stash-skills disk shows what our data takes, prune and cache --clear free it."
    if free < _LEAST_BYTES:
        return problem("disk", said, fix)
    if free < _TRAINING_BYTES:
        needed = f"A training of the usual base model wants about {_TRAINING_BYTES // _GB} GB."
        return warning("disk", f"{said} {needed}", fix)
    return ok("disk", said)


class Device(Frozen):
    """What a look at the device gave, kept until another torch is there."""

    kind: str
    name: str
    torch: str


def gpu(settings: Settings, *, ask: bool, torch: str | None) -> Check:
    """What a training would run on. ask: load torch in a process of its own and look; otherwise
    what the last look gave. torch: its version; None where it is not installed.
    """
    if torch is None or not has_extra("local"):
        return not_checked("gpu", "The local pipeline is not installed.")
    kept = settings.home / "device.json"
    device = _kept(kept, torch)
    if ask:
        try:
            device = Device.model_validate(probe(["gpu"], _GPU_SECONDS)[0])
        except (ProbeFailed, ValidationError) as error:
            return warning("gpu", f"It could not be looked at: {error}", "Install torch again.")
        if settings.home.is_dir():
            write_atomic(kept, device.model_dump_json())
    if device is None:
        return not_checked("gpu", "Looking takes some seconds.", "Ask for it (gpu=true, --gpu).")
    if device.kind == "cpu":
        return ok("gpu", "None that torch can use: trainings run on the processor, slowly.")
    return ok("gpu", f"{device.kind}: {device.name}.")


def _kept(path: Path, torch: str) -> Device | None:
    with contextlib.suppress(OSError, ValidationError):
        device = Device.model_validate_json(path.read_bytes())
        return device if device.torch == torch else None
    return None
