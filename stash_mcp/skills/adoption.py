"""An installed skill as the seed of a run: what stands in its file now, a person's edits included.

Read when the run is started and kept with it, so that a run that is carried on has the same seed.
"""

import os
from collections.abc import Sequence
from pathlib import Path

from stash_mcp.errors import InputError, NotFoundError, SkillDocumentError
from stash_mcp.models import AdoptedSkill, Installation, Skill
from stash_mcp.skills.document import MAX_BODY_CHARACTERS, Document, read_document
from stash_mcp.skills.findings import Finding
from stash_mcp.skills.history import file_state, find, same_place
from stash_mcp.skills.manifest import Manifest
from stash_mcp.skills.scan import find_active
from stash_mcp.skills.targets import Target
from stash_mcp.skills.versions import is_text_of, sha256

DEFAULT = "default"
INSTALLED = "installed"
# A body may have 20,000 characters, of four bytes at the most, and a description 1,024.
_MAX_BYTES = 5 * MAX_BODY_CHARACTERS
_SEEDS = (
    "The seed is 'default' (the description), 'installed', or the name or path of an installed "
    "skill; list_installed_skills (`stash-skills installed`) shows those."
)


def chosen(
    manifest: Manifest, seed: str, name: str | None, targets: Sequence[Target]
) -> Installation:
    """The last record of the installation that `seed` means.

    For `installed` it is that of the skill `name`, or of the only skill, in the folders of
    `targets`: of several files of it the one that was edited, or else the newest. Raises
    NotFoundError, and InputError with the places where several are meant.
    """
    if seed != INSTALLED:
        return _named(manifest, seed)
    folders = {Path(os.path.realpath(target.skills_dir)) for target in targets}
    here = [
        row
        for row in manifest.latest_of_each()
        if row.kind != "uninstall"
        and Path(row.path).parent.parent in folders
        and name in (None, row.name)
    ]
    if not here:
        called = f" '{name}'" if name else ""
        raise NotFoundError(
            f"No skill{called} was installed by stash-skills into "
            f"{', '.join(sorted(map(str, folders)))}.",
            _SEEDS,
        )
    if len({row.name for row in here}) > 1:
        raise _ambiguous("Several skills are installed", here)
    return _of_one_skill(here)


def adopt(latest: Installation, name: str | None) -> tuple[Skill, AdoptedSkill]:
    """The skill in the file of `latest`, and the same as a run keeps it.

    name: of the new skill, if it was given; else the file must name itself as its folder does.
    Raises, for a file that cannot be a seed: NotFoundError where it is gone, SkillDocumentError for
    what is no SKILL.md that a run could produce, InstallError for a link.
    """
    content = _content(latest)
    document = _document(content, latest)
    skill = document.skill
    if document.other_keys:
        raise _unusable(
            latest,
            f"its frontmatter has more than name and description ({', '.join(document.other_keys)})"
            ", which a run's skill has not.",
            "Take these keys out, or leave seed out.",
        )
    if name is None and skill.name != latest.name:
        raise _unusable(
            latest,
            f"it calls itself '{skill.name}', and its folder is '{latest.name}'.",
            "Make the two the same, or give skill_name.",
        )
    if high := [row for row in find_active(_text(content)) if row.severity == "high"]:
        raise _unusable(latest, _findings(high), "Take out what is named, or leave seed out.")
    edited = not is_text_of(content, latest.sha256)
    adopted = AdoptedSkill(path=latest.path, sha256=sha256(content), body=skill.body, edited=edited)
    return skill, adopted


def in_words(adopted: AdoptedSkill) -> str:
    if not adopted.edited:
        return f"The seed is the installed {adopted.path}."
    return (
        f"The seed is the installed {adopted.path}, edited by hand since. If a better skill is "
        "installed there, that text stays as a version."
    )


# --- which ---


def _named(manifest: Manifest, seed: str) -> Installation:
    try:
        return find(manifest, seed)
    except NotFoundError as error:
        hint = " The number that everything is drawn by is random_seed." if seed.isdigit() else ""
        raise NotFoundError(error.problem, f"{_SEEDS}{hint}") from None


def _of_one_skill(here: Sequence[Installation]) -> Installation:
    states = {row.path: file_state(row) for row in here}
    edited = [row for row in here if states[row.path] == "edited"]
    if len({_digest(row) for row in edited}) > 1:
        raise _ambiguous(f"'{here[0].name}' was edited in several ways", edited)
    there = [row for row in here if states[row.path] == "current"]
    return max(edited or there or here, key=lambda row: row.installed_at)


def _digest(row: Installation) -> str:
    place = same_place(row)
    return sha256(place.content or b"")


def _ambiguous(problem: str, rows: Sequence[Installation]) -> InputError:
    return InputError(
        f"{problem}: {', '.join(row.path for row in rows)}.",
        "Give one of these paths as seed, or the name of the one that is meant as skill_name.",
    )


# --- what it holds ---


def _content(latest: Installation) -> bytes:
    path = Path(latest.path)
    if latest.kind != "uninstall" and path.is_file() and path.stat().st_size > _MAX_BYTES:
        raise _unusable(
            latest,
            f"it has {path.stat().st_size:,} bytes.",
            f"A skill's body has at most {MAX_BODY_CHARACTERS:,} characters; shorten it.",
        )
    content = None if latest.kind == "uninstall" else same_place(latest).content
    if content is None:
        raise NotFoundError(
            f"{path} is not there any more, so it cannot be the seed.",
            "Bring it back with rollback_skill (stash-skills rollback), or leave seed out.",
        )
    return content


def _document(content: bytes, latest: Installation) -> Document:
    try:
        return read_document(content.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise _unusable(latest, "it is not UTF-8 text.", "Save it as UTF-8.") from error
    except SkillDocumentError as error:
        raise _unusable(latest, error.problem, error.fix) from error


def _text(content: bytes) -> str:
    return content.decode("utf-8").replace("\r\n", "\n")


def _findings(findings: Sequence[Finding]) -> str:
    listed = " ".join(f"{row.rule} in line {row.line}: {row.why}" for row in findings[:10])
    return f"it holds what can harm whoever loads it. {listed}"


def _unusable(latest: Installation, why: str, fix: str) -> SkillDocumentError:
    return SkillDocumentError(f"{latest.path} cannot be the seed: {why}", fix)
