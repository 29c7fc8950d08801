"""How a command says that it was refused or failed: on standard error, or as JSON on request."""

import json
import sys
import traceback
from pathlib import Path

from stash_mcp.cli.characters import visible
from stash_mcp.errors import InstallConflictError, StashSkillsError
from stash_mcp.redaction import redact
from stash_mcp.settings import load_settings, secret_values
from stash_mcp.storage.files import private_dir, write_atomic

REPORT_NAME = "last-error.log"


def show(error: StashSkillsError, *, as_json: bool) -> None:
    if as_json:
        sys.stdout.write(_as_json(error))
        return
    lines = [f"Error: {error.problem}", error.fix]
    if isinstance(error, InstallConflictError):
        lines += ["", error.diff]
    sys.stderr.write(visible("\n".join(lines)) + "\n")


def show_unexpected(error: Exception, *, as_json: bool) -> None:
    """Say it in a sentence; the traceback goes to a file, for a report."""
    kept = _keep_traceback(error)
    where = "" if kept is None else f" The details are in {kept}."
    show(
        _Unexpected(
            f"Something went wrong inside stash-skills ({type(error).__name__}: "
            f"{redact(str(error), secret_values())}).{where}",
            "Try it once more; if it stays, report it with that file. Nothing stored is lost.",
        ),
        as_json=as_json,
    )


class _Unexpected(StashSkillsError):
    code = "unexpected"


def _keep_traceback(error: Exception) -> Path | None:
    text = redact("".join(traceback.format_exception(error)), secret_values())
    try:
        path = private_dir(load_settings().home) / REPORT_NAME
        write_atomic(path, text)
    except (StashSkillsError, OSError, RuntimeError):
        return None
    return path


def _as_json(error: StashSkillsError) -> str:
    value = {
        "code": error.code,
        "message": str(error),
        "problem": error.problem,
        "fix": error.fix,
    }
    if isinstance(error, InstallConflictError):
        value["diff"] = error.diff
    return json.dumps({"error": value}, indent=2) + "\n"
