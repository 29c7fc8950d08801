"""The skills that come with this package, read from where they lie: in a wheel below the package,
in a working copy beside it.
"""

from dataclasses import dataclass
from functools import cache
from pathlib import Path

import stash_mcp
from stash_mcp.skills.document import parse

SKILL_FILE = "SKILL.md"


@dataclass(frozen=True)
class SkillFile:
    """path: below the skill's folder, with `/` between its parts."""

    path: str
    content: bytes


@dataclass(frozen=True)
class SkillFolder:
    """A skill with all of its files, SKILL.md first; name and description are SKILL.md's."""

    name: str
    description: str
    files: tuple[SkillFile, ...]

    def file(self, path: str) -> SkillFile | None:
        return next((file for file in self.files if file.path == path), None)


def folder_of(text: str, *others: SkillFile) -> SkillFolder:
    """The skill whose SKILL.md is `text`; raises SkillDocumentError where it is none."""
    skill = parse(text)
    first = SkillFile(SKILL_FILE, text.encode())
    return SkillFolder(skill.name, skill.description, (first, *others))


@cache
def shipped_skills() -> tuple[SkillFolder, ...]:
    """By name."""
    return tuple(_read(path.parent) for path in sorted(_root().glob(f"*/{SKILL_FILE}")))


def _root() -> Path:
    package = Path(stash_mcp.__file__).parent
    in_wheel = package / "shipped_skills"
    return in_wheel if in_wheel.is_dir() else package.parent / "skills"


def _read(folder: Path) -> SkillFolder:
    text = (folder / SKILL_FILE).read_bytes().decode()
    others = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return folder_of(
        text,
        *(
            SkillFile(path.relative_to(folder).as_posix(), path.read_bytes())
            for path in others
            if path != folder / SKILL_FILE
        ),
    )
