"""Adding the local pipeline in the background: started, looked at, never twice at once.

A process of its own runs pip (or uv) and notes its end; a lock says that it lives.
"""

import importlib.util
import shutil
import subprocess
import sys
import threading
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from stash_mcp.agents.surroundings import DISTRIBUTION, Surroundings, Which
from stash_mcp.errors import UnsupportedError
from stash_mcp.models import Frozen
from stash_mcp.redaction import redact
from stash_mcp.settings import Settings, installer_environment, secret_values
from stash_mcp.storage.files import os_errors, private_dir, try_lock, write_atomic

_STARTING_SECONDS = 20
_LINE_CHARACTERS = 160
_TAIL_BYTES = 4096
_PHASES = (
    ("Successfully installed", "finishing"),
    ("Installing collected packages", "installing"),
    ("Downloading", "downloading"),
    ("Prepared", "installing"),
    ("Collecting", "finding versions"),
    ("Resolved", "downloading"),
)


class InstallRecord(Frozen):
    """What is kept of the last installation. code: of the installer; None while it runs."""

    started_at: datetime
    ended_at: datetime | None = None
    code: int | None = None


class InstallState(Frozen):
    """How it stands. said: one line."""

    is_running: bool
    succeeded: bool
    said: str


def record_path(home: Path) -> Path:
    return home / "install-local.json"


def log_path(home: Path) -> Path:
    return home / "install-local.log"


def lock_path(home: Path) -> Path:
    return home / "install-local.lock"


def start(
    settings: Settings,
    surroundings: Surroundings,
    requirements: Sequence[str],
    *,
    now: datetime,
    cpu_torch: str | None = None,
    options: Sequence[str] = (),
    which: Which = shutil.which,
) -> None:
    """Start it, unless one is going on.

    options: of the installer. Raises UnsupportedError, with the line to run instead, where this
    Python cannot be added to.
    """
    command = [*_installer(surroundings, cpu_torch, which), *options, *requirements]
    home = private_dir(settings.home)
    with try_lock(lock_path(home)) as free:
        if not free:
            return
        write_record(home, InstallRecord(started_at=now))
    log = log_path(home)
    with os_errors("open", log), log.open("wb") as output:
        log.chmod(0o600)
        process = subprocess.Popen(
            [sys.executable, "-m", "stash_mcp.doctor.install_process", str(home), "--", *command],
            cwd=home,
            env=installer_environment(cpu_torch=cpu_torch),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            **_detached(),
        )
    # Takes note of its end if we are still there then, so that no zombie stays.
    threading.Thread(target=process.wait, name="install-reaper", daemon=True).start()


def state(home: Path, now: datetime) -> InstallState | None:
    """How the last installation stands; None where there was none."""
    record = _record(home)
    if record is None:
        return None
    seconds = max(0.0, ((record.ended_at or now) - record.started_at).total_seconds())
    if record.code is not None:
        return _ended(home, record.code, seconds)
    if _alive(home) or seconds < _STARTING_SECONDS:
        phase, last = _where(home)
        said = f"Being installed for {seconds:.0f} s: {phase}. {last}".strip()
        return InstallState(is_running=True, succeeded=False, said=said)
    said = f"The installation was interrupted; see {log_path(home)}. It can be started again."
    return InstallState(is_running=False, succeeded=False, said=said)


def write_record(home: Path, record: InstallRecord) -> None:
    write_atomic(record_path(home), record.model_dump_json())


def _installer(surroundings: Surroundings, cpu_torch: str | None, which: Which) -> list[str]:
    how = surroundings.how_to_add("local", index=cpu_torch)
    if not surroundings.can_be_added_to:
        what = (
            "belongs to uvx and is gone tomorrow"
            if surroundings.kind == "uvx"
            else ("belongs to the operating system")
        )
        raise UnsupportedError(
            f"Nothing can be installed into this Python, which {what}.",
            f"Run this in a shell: {how}. Then set your agent up again: stash-skills setup.",
        )
    python = str(surroundings.executable)
    if importlib.util.find_spec("pip") is not None:
        quiet = ["--disable-pip-version-check", "--no-input", "--progress-bar", "off"]
        return [python, "-m", "pip", "install", *quiet]
    if (uv := which("uv")) is not None:
        return [uv, "pip", "install", "--python", python, "--no-progress"]
    if surroundings.kind == "pipx" and (pipx := which("pipx")) is not None:
        return [pipx, "runpip", DISTRIBUTION, "install", "--no-input", "--progress-bar", "off"]
    raise UnsupportedError(
        "This environment has no pip, and neither uv nor pipx was found.",
        f"Run this in a shell: {how}",
    )


def _ended(home: Path, code: int, seconds: float) -> InstallState:
    if code == 0:
        said = f"The installation ended well after {seconds:.0f} s."
        return InstallState(is_running=False, succeeded=True, said=said)
    _, last = _where(home)
    said = (
        f"The installation failed after {seconds:.0f} s: {last.rstrip('.')}. See {log_path(home)}."
    )
    return InstallState(is_running=False, succeeded=False, said=said)


def _alive(home: Path) -> bool:
    with try_lock(lock_path(home)) as free:
        return not free


def _record(home: Path) -> InstallRecord | None:
    try:
        return InstallRecord.model_validate_json(record_path(home).read_bytes())
    except (OSError, ValidationError):
        return None


def _where(home: Path) -> tuple[str, str]:
    """The phase, and the last line of the log, without keys that an index's address may hold."""
    try:
        with log_path(home).open("rb") as file:
            end = file.seek(0, 2)
            file.seek(max(0, end - _TAIL_BYTES))
            text = file.read().decode("utf-8", "replace")
    except OSError:
        return "starting", ""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    phase = next(
        (phase for line in reversed(lines) for word, phase in _PHASES if line.startswith(word)),
        "starting",
    )
    last = redact(lines[-1], secret_values())[:_LINE_CHARACTERS] if lines else ""
    return phase, last


def _detached() -> dict[str, Any]:
    """No console window, and no signal that is meant for the client."""
    if sys.platform == "win32":
        return {"creationflags": subprocess.DETACHED_PROCESS | subprocess.CREATE_NEW_PROCESS_GROUP}
    return {"start_new_session": True}
