"""Whose the file is that stands where a skill is to be written, and what may be done with it.

Ours is a SKILL.md whose SHA-256 is the latest that the manifest has for its file (records.py); line
ends that Git has changed since make no difference. A person's edit may be replaced by the skill
that was evolved from it, and by no other: it stays as a version.
"""

from pathlib import Path

from stash_mcp.errors import InstallConflictError, InstallError
from stash_mcp.models import AdoptedSkill, Installation
from stash_mcp.skills.place import Place, unified_diff
from stash_mcp.skills.versions import is_text_of, sha256


def stands(place: Place, latest: Installation) -> bool:
    """Whether the file is as `latest`, the last record of it, left it."""
    if place.content is None:
        return False
    return _is_ours(latest) and is_text_of(place.content, latest.sha256)


def refuse_not_ours(
    place: Place,
    text: str,
    latest: Installation | None,
    adopted: AdoptedSkill | None = None,
    copied: Installation | None = None,
) -> None:
    """Raise InstallConflictError, with the diff to `text`, unless the file is as we wrote it.

    copied: the version whose text it holds all the same, if there is one.
    """
    if place.content is None or (latest is not None and stands(place, latest)):
        return
    raise InstallConflictError(
        f"{place.file} {_story(place, latest, adopted, copied)}; it was left as it is.",
        "Keep it; or replace it with force, which makes a copy first; or install under another "
        f"name, by starting a run with another skill_name{_or_evolve(latest)}.",
        unified_diff(place, text),
    )


def refuse_to_remove(place: Place, latest: Installation, copied: Installation | None) -> None:
    """The same for taking the file away."""
    if place.content is None or stands(place, latest):
        return
    raise InstallConflictError(
        f"{place.file} {_story(place, latest, None, copied)}; it was left as it is.",
        "Keep it; or remove it with force, which makes a copy first.",
        unified_diff(place, "", "to be removed"),
    )


def refuse_removed(place: Place, latest: Installation | None) -> None:
    if latest is not None and place.content is None:
        raise InstallError(
            f"{place.file} was removed since it was installed; it was not put back.",
            "Install it by hand if it is wanted again.",
        )


def refuse_missing_project(folder: Path | None) -> None:
    """A project that is not there is a mistake in what names it: it is never made."""
    if folder is not None and not folder.is_dir():
        raise InstallError(
            f"There is no project folder {folder}; nothing was installed.",
            "Correct CLAUDE_PROJECT_DIR, or work in the project's folder; or install for all of "
            "your projects (scope user).",
        )


def adoption(
    place: Place,
    text: str,
    adopted: AdoptedSkill | None,
    wanted: Installation,
    latest: Installation | None,
) -> Installation | None:
    """The version to record for the edit that `text` was evolved from; None if there is none.

    wanted: the installation of `text`. latest: the last record of that path.
    """
    if adopted is None or place.content is None or place.content == text.encode():
        return None
    if sha256(place.content) != adopted.sha256:
        return None
    if latest is not None and stands(place, latest):
        return None
    # Candidate 0 is the seed: the same body, in a file that we write.
    return wanted.model_copy(update={"kind": "adopt", "candidate": 0, "sha256": adopted.sha256})


def _or_evolve(latest: Installation | None) -> str:
    return "; or let a run start from it (seed: installed)" if latest and _is_ours(latest) else ""


def _is_ours(latest: Installation) -> bool:
    return latest.kind != "uninstall"


def _story(
    place: Place,
    latest: Installation | None,
    adopted: AdoptedSkill | None,
    copied: Installation | None,
) -> str:
    if adopted is not None and adopted.path == str(place.file):
        return "was edited again since it was taken as the seed of this run"
    if latest is not None and _is_ours(latest):
        again = "" if copied is None else f", and holds the text of version {copied.version} again"
        return (
            f"was edited since stash-skills wrote it on {latest.installed_at:%Y-%m-%d %H:%M}{again}"
        )
    if copied is not None:
        there = "there before" if copied.path == str(place.file) else f"as {copied.path}"
        return (
            f"was not written by stash-skills, though it holds the text of version "
            f"{copied.version}, which was installed {there}"
        )
    return "was not written by stash-skills"
