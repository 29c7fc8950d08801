"""A folder or a file as a person writes it, and what is refused of it.

What a shell would have filled in (`$HOME`, `~somebody`) or another system would read (`C:\\`) is no
folder's name here: taken as it stands, it would make a folder of that name in the project.
"""

import os
import re
from pathlib import Path

from stash_mcp.errors import InputError
from stash_mcp.settings import Settings

_URL = re.compile(r"^(?:[A-Za-z][A-Za-z0-9+.-]*://|file:)")
_DRIVE = re.compile(r"^[A-Za-z]:(?:[\\/]|$)")
_VARIABLE = re.compile(r"(?:^|[\\/])(?:\$(?:\{|\w)|%\w+%)")
_MAX_NAME_BYTES = 255
_MAX_PATH_BYTES = 4096


def is_path(text: str) -> bool:
    """Whether this is a path and no name."""
    return text.startswith(("~", ".")) or "/" in text or "\\" in text or Path(text).is_absolute()


def absolute(settings: Settings, text: str) -> Path:
    """The path that is meant: `~` is the person's home, a relative one starts at the project.

    Raises InputError for what no file system or only another one could take.
    """
    reason = _unusable(text)
    if reason is not None:
        raise InputError(f"'{_short(text)}' {reason}", "Write the path out, as this system has it.")
    path = Path(text)
    if text.startswith("~"):
        path = settings.user_home / text[1:].lstrip("/\\")
    return Path(os.path.normpath(settings.project_dir / path))


def _unusable(text: str) -> str | None:
    if "\0" in text:
        return "has a NUL character in it."
    if text.startswith("~") and text[1:2] not in ("", "/", "\\"):
        return "begins with another user's home, which is not looked up."
    if _URL.match(text):
        return "is a URL, and no path."
    if _VARIABLE.search(text):
        return "has a variable in it, which is not filled in here."
    if os.sep == "/" and (_DRIVE.match(text) or "\\" in text):
        return "is written as a path of Windows, which this system is not."
    try:
        names = [len(os.fsencode(name)) for name in re.split(r"[\\/]", text)]
    except UnicodeEncodeError:
        return "has a character that no file's name can have."
    if max(names) > _MAX_NAME_BYTES or sum(names) + len(names) > _MAX_PATH_BYTES:
        return "is longer than a file system takes."
    return None


def _short(text: str) -> str:
    return text if len(text) <= 80 else f"{text[:77]}..."


def refuse_our_own(settings: Settings, skills_dir: Path) -> None:
    """Raise InputError where an agent would list our data as skills, or they would lie in it."""
    home, folder = Path(os.path.realpath(settings.home)), Path(os.path.realpath(skills_dir))
    if folder.is_relative_to(home):
        raise InputError(
            f"{skills_dir} is in {settings.home}, the folder of stash-skills' own data.",
            "Name another folder.",
        )
    if home.is_relative_to(folder):
        raise InputError(
            f"{settings.home}, the folder of stash-skills' own data, is in the skills folder "
            f"{skills_dir}, where an agent would take what it finds for skills.",
            "Set STASH_MCP_HOME to a folder outside it.",
        )
