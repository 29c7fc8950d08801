"""What is said of a skill that was installed by itself, held back or put off."""

from collections.abc import Sequence

from stash_mcp.backends.local.guards import gain
from stash_mcp.errors import StashSkillsError
from stash_mcp.models import Run
from stash_mcp.skills.install import Installed

_FINDINGS = 5
"""Of one skill, told in a notice."""


def installed(run: Run, written: Sequence[Installed]) -> str:
    paths = ", ".join(dict.fromkeys(row.installation.path for row in written))
    said = [f"The skill of run {run.id} is installed: {paths}."]
    if run.seed_score is not None and run.best_score is not None:
        gained, measured = gain(run, run.seed_score, run.best_score)
        said.append(f"Its gain over the seed is {gained:+.3f} on {measured}.")
    for adopted in dict.fromkeys(row.adopted for row in written if row.adopted is not None):
        said.append(
            f"The edited text that was its seed stays as version {adopted.version}; "
            f"rollback_skill (stash-skills rollback {adopted.name}) brings it back."
        )
    found = dict.fromkeys(finding for row in written for finding in row.findings)
    if found:
        lines = ", ".join(f"{row.rule} in line {row.line}" for row in list(found)[:_FINDINGS])
        more = f" and {len(found) - _FINDINGS} more" if len(found) > _FINDINGS else ""
        said.append(f"The scan has low findings, which stop nothing: {lines}{more}.")
    return " ".join(said)


def staged(run: Run, reason: str, in_place: Sequence[str] = ()) -> str:
    """in_place: the files that hold this skill all the same."""
    where = "ready and not installed"
    if in_place:
        where = f"in {', '.join(in_place)}, and not in every place that it was wanted in"
    return (
        f"The skill of run {run.id} is {where}: {reason} Read it with list_candidates and install "
        f"it with install_skill (stash-skills install {run.id})."
    )


def put_off(run: Run, error: StashSkillsError, in_place: Sequence[str]) -> str:
    where = "not installed yet"
    if in_place:
        where = f"in {', '.join(in_place)}, and not yet in every place that it was wanted in"
    return (
        f"The skill of run {run.id} is {where}: {error.problem} It is tried again by itself while "
        "a session or `stash-skills watch` is open, after pauses that grow to ten minutes."
    )
