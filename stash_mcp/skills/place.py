"""What stands where a skill is to be written, read once and judged before anything is changed."""

import contextlib
import difflib
import os
import re
import stat
import sys
import unicodedata
from dataclasses import dataclass
from pathlib import Path

from stash_mcp.errors import InstallError
from stash_mcp.storage.files import os_errors

SKILL_FILE = "SKILL.md"

# Windows' junction is no symbolic link, and leads elsewhere all the same.
_JUNCTION = 0xA0000003
_TAKES_OTHER_SPELLINGS = sys.platform in ("darwin", "win32")
_MAX_DIFF_BYTES = 1_000_000
_LINE = re.compile(r"[^\n]*\n|[^\n]+")


@dataclass(frozen=True)
class Place:
    """A skill's folder in a skills folder. content: of its SKILL.md, None if there is none."""

    skills_dir: Path
    skills_dir_exists: bool
    folder: Path
    folder_exists: bool
    content: bytes | None

    @property
    def file(self) -> Path:
        return self.folder / SKILL_FILE


def look(skills_dir: Path, name: str) -> Place:
    """The place of the skill `name`; refuses what must not be written through or beside.

    skills_dir: links in it are followed, as agents follow them. Raises InstallError for a link, for
    a file of another kind, and for a neighbour that some file systems take for the same name.
    """
    _refuse_dangling(skills_dir)
    # Not `Path.resolve`, which raises where links go in a circle.
    skills_dir = _as_spelled(Path(os.path.realpath(skills_dir)))
    folder = skills_dir / name
    file = folder / SKILL_FILE
    with os_errors("look into", skills_dir):
        skills_dir_exists = _exists(skills_dir, stat.S_IFDIR)
        folder_exists = skills_dir_exists and _exists_alone(folder, stat.S_IFDIR)
        file_exists = folder_exists and _exists_alone(file, stat.S_IFREG)
    with os_errors("read", file):
        content = file.read_bytes() if file_exists else None
    return Place(skills_dir, skills_dir_exists, folder, folder_exists, content)


def _refuse_dangling(skills_dir: Path) -> None:
    """Refuse a link that leads nowhere: what it leads to is somebody else's to make."""
    for path in (skills_dir, *skills_dir.parents):
        if path.is_symlink() and not os.path.exists(path):
            raise InstallError(
                f"{path} is a link to {os.readlink(path)}, which is not there.",
                "Make what it leads to, or take the link away.",
            )


def _exists_alone(path: Path, kind: int) -> bool:
    _refuse_lookalike(path)
    return _exists(path, kind)


def _exists(path: Path, kind: int) -> bool:
    """Whether `path` exists; refuses it if it is a link or not of the wanted kind."""
    try:
        info = path.lstat()
    except FileNotFoundError:
        return False
    if stat.S_ISLNK(info.st_mode) or getattr(info, "st_reparse_tag", 0) == _JUNCTION:
        raise InstallError(
            f"{path} is a link; what it leads to was left as it is.",
            "Take the link away, or install under another name by a run with another skill_name.",
        )
    if stat.S_IFMT(info.st_mode) != kind:
        wanted = "a folder" if kind == stat.S_IFDIR else "an ordinary file"
        raise InstallError(f"{path} is not {wanted}.", "Move it away and do it again.")
    return True


def _refuse_lookalike(path: Path) -> None:
    """Refuse a neighbour whose name differs from `path`'s in case or in its form of Unicode."""
    wanted = _folded(path.name)
    for name in os.listdir(path.parent):
        if name != path.name and _folded(name) == wanted:
            raise InstallError(
                f"{path.parent / name} has the same name as '{path.name}' but for its letters' "
                "case, which some file systems and agents take for the same.",
                "Rename it or move it away; or install under another name by a run with another "
                "skill_name.",
            )


def _folded(name: str) -> str:
    return unicodedata.normalize("NFKC", name).casefold()


def _as_spelled(path: Path) -> Path:
    """`path` with the names that its folders have.

    One place must not have two names in the manifest where the system takes `Proj` and `proj`, or
    two forms of an accent, for the same.
    """
    if not _TAKES_OTHER_SPELLINGS:
        return path
    spelled = Path(path.anchor)
    for name in path.parts[1:]:
        spelled /= _spelled(spelled, name)
    return spelled


def _spelled(folder: Path, name: str) -> str:
    with contextlib.suppress(OSError):
        names = os.listdir(folder)
        if name not in names:
            for other in (other for other in names if _folded(other) == _folded(name)):
                if os.path.samefile(folder / other, folder / name):
                    return other
    return name


def unified_diff(place: Place, text: str, becomes: str = "to be installed") -> str:
    """From what stands there to `text`. becomes: what that is, for the diff's head."""
    old = place.content or b""
    if len(old) > _MAX_DIFF_BYTES:
        return f"{place.file} has {len(old):,} bytes: too many to compare here.\n"
    lines = difflib.unified_diff(
        _LINE.findall(old.decode("utf-8", errors="replace")),
        _LINE.findall(text),
        fromfile=str(place.file),
        tofile=f"{place.file} ({becomes})",
    )
    return "".join(
        line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines
    )
