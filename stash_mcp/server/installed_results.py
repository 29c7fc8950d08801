"""What the tools for installing, installed skills, going back and taking away return."""

from collections.abc import Sequence
from datetime import datetime

from pydantic import Field

from stash_mcp.backends.installations import (
    InstalledDetail,
    InstalledSkill,
    InstallOutcome,
    ScanFinding,
    UninstallOutcome,
)
from stash_mcp.models import Installation, Run, ScoreKind
from stash_mcp.server.results import Part, Result
from stash_mcp.server.shortening import fit, next_offset, rounded, shorten_within
from stash_mcp.server.wording import partial_in_words

DIFF_BYTES = 9_000
MAX_FINDINGS = 20


class WrittenFile(Part):
    path: str
    agent: str
    version: int
    action: str = Field(description="created, replaced or unchanged")
    backup: str | None = Field(None, description="Where the replaced file is kept")
    visibility: str = Field(description="Whether the running agent sees it; tell the person")
    diff: str | None = Field(None, description="In a dry run")

    @classmethod
    def of(cls, outcome: InstallOutcome) -> "WrittenFile":
        done = outcome.installation
        return cls(
            path=done.path,
            agent=done.agent,
            version=done.version,
            action=outcome.action,
            backup=outcome.backup,
            visibility=outcome.visibility,
            diff=_short(outcome.diff) if outcome.dry_run else None,
        )


class InstallResult(Result):
    name: str
    run_id: str
    candidate: int
    sha256: str
    dry_run: bool = Field(description="Nothing was written")
    partial: bool = Field(description="From a run that was stopped early")
    warning: str | None = Field(None, description="Tell the person")
    findings: tuple[str, ...] = Field(description="Of the scan; those that stop nothing")
    written: tuple[WrittenFile, ...]

    @classmethod
    def of(cls, outcomes: Sequence[InstallOutcome], run: Run | None = None) -> "InstallResult":
        done = outcomes[0].installation
        warning = None if run is None else partial_in_words(run)
        return cls(
            name=done.name,
            run_id=done.run_id,
            candidate=done.candidate,
            sha256=done.sha256,
            dry_run=outcomes[0].dry_run,
            partial=warning is not None,
            warning=warning,
            findings=findings_in_words(outcomes[0].findings),
            written=tuple(WrittenFile.of(outcome) for outcome in outcomes),
        )


def findings_in_words(findings: Sequence[ScanFinding]) -> tuple[str, ...]:
    """A line for each, at most twenty."""
    shown = findings[:MAX_FINDINGS]
    return tuple(f"{row.rule} ({row.severity}), line {row.line}: {row.why}" for row in shown)


class InstalledRow(Part):
    name: str
    path: str
    agent: str
    state: str = Field(
        description="current, newer available, edited (by hand), missing, unreadable, uninstalled"
    )
    version: int
    run_id: str
    candidate: int
    installed_at: datetime
    reward_model_id: str | None = None
    score: float | None = None
    score_kind: str | None = None
    gain: float | None = Field(None, description="Over the seed")
    gain_kind: str | None = Field(None, description="in-sample or held-out")
    newer_run: str | None = None
    note: str | None = Field(None, description="Tell the person")

    @classmethod
    def of(cls, skill: InstalledSkill) -> "InstalledRow":
        origin, done = skill.origin, skill.installation
        return cls(
            **done.model_dump(include={"name", "path", "agent", "version", "run_id", "candidate"}),
            state=skill.state,
            installed_at=done.installed_at,
            reward_model_id=origin.reward_model_id,
            score=rounded(origin.score),
            score_kind=None if origin.score is None else origin.score_kind,
            gain=rounded(gain(skill)),
            gain_kind=gain_kind(skill),
            newer_run=skill.newer_run,
            note=" ".join(notes_in_words(skill)) or None,
        )


def notes_in_words(skill: InstalledSkill) -> list[str]:
    """What the state does not tell."""
    notes = []
    if len(skill.agents) > 1:
        notes.append(f"{listed(skill.agents)} share this file.")
    if skill.line_ends_changed and skill.state in ("current", "newer available"):
        notes.append("Its line ends were changed, to CRLF; the text is the same.")
    return notes


def gone_in_words(outcome: UninstallOutcome) -> str | None:
    """For whom else a file is gone; None where only one agent reads it."""
    if len(outcome.agents) < 2:
        return None
    gone = "would be gone" if outcome.dry_run else "is gone"
    return f"{listed(outcome.agents)} share this file: it {gone} for all of them."


def listed(names: Sequence[str]) -> str:
    """`a, b and c`."""
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def gain(skill: InstalledSkill) -> float | None:
    """Over the seed: on held-out conversations where that was measured."""
    origin = skill.origin
    if origin.heldout_gain is not None:
        return origin.heldout_gain
    if origin.score is None or origin.seed_score is None:
        return None
    return origin.score - origin.seed_score


def gain_kind(skill: InstalledSkill) -> ScoreKind | None:
    if gain(skill) is None:
        return None
    return "in-sample" if skill.origin.heldout_gain is None else "held-out"


class VersionRow(Part):
    version: int
    run_id: str
    candidate: int
    kind: str
    installed_at: datetime

    @classmethod
    def of(cls, row: Installation) -> "VersionRow":
        return cls(**row.model_dump(include=set(cls.model_fields)))


class InstalledList(Result):
    skills: tuple[InstalledRow, ...]
    total: int
    next_offset: int | None = None
    versions: tuple[VersionRow, ...] | None = Field(None, description="Newest first")
    diff: str | None = Field(None, description="From the file to that version; empty: the same")

    @classmethod
    def page(cls, skills: Sequence[InstalledSkill], limit: int, offset: int) -> "InstalledList":
        rows = fit(InstalledRow.of(skill) for skill in skills[offset : offset + limit])
        return cls(
            skills=rows,
            total=len(skills),
            next_offset=next_offset(offset, len(rows), len(skills)),
        )

    @classmethod
    def one(cls, detail: InstalledDetail, limit: int, offset: int) -> "InstalledList":
        newest_first = detail.versions[::-1]
        rows = fit(
            (VersionRow.of(row) for row in newest_first[offset : offset + limit]), DIFF_BYTES
        )
        return cls(
            skills=(InstalledRow.of(detail.skill),),
            total=1,
            next_offset=next_offset(offset, len(rows), len(newest_first)),
            versions=rows,
            diff=_short(detail.diff),
        )


class UninstallResult(Result):
    name: str
    path: str
    dry_run: bool = Field(description="Nothing was removed")
    backup: str | None = Field(None, description="Where the removed file is kept")
    diff: str | None = Field(None, description="In a dry run")
    note: str | None = Field(None, description="Tell the person")

    @classmethod
    def of(cls, outcome: UninstallOutcome) -> "UninstallResult":
        return cls(
            name=outcome.installation.name,
            path=outcome.installation.path,
            dry_run=outcome.dry_run,
            backup=outcome.backup,
            diff=_short(outcome.diff) if outcome.dry_run else None,
            note=gone_in_words(outcome),
        )


def _short(diff: str) -> str:
    return shorten_within(diff, DIFF_BYTES)
