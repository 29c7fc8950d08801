"""What goes into and comes out of a backend about installed skills and the agents' folders."""

from typing import Literal

from pydantic import computed_field

from stash_mcp.models import Frozen, Installation, ScoreKind

Scope = Literal["project", "user"]
SkillState = Literal["current", "newer available", "edited", "missing", "unreadable", "uninstalled"]


class ScanFinding(Frozen):
    """What the scan found in a skill's text. `line` counts from 1 in the whole SKILL.md."""

    rule: str
    severity: Literal["high", "low"]
    line: int
    why: str


class InstallOrder(Frozen):
    """`candidate` null means the best one. `force` replaces what is there after a backup.

    `agents`: ids, or paths of skills folders. `accept_findings`: rules of the scan that do not stop
    this installation. `dry_run`: find out everything and write nothing.
    """

    run_id: str
    candidate: int | None = None
    scope: Scope = "project"
    agents: tuple[str, ...] = ("claude-code",)
    accept_findings: tuple[str, ...] = ()
    force: bool = False
    dry_run: bool = False


class RollbackOrder(Frozen):
    """`skill`: its name, or its path where several have the name. `version` null means the newest
    whose text is another one than the present.
    """

    skill: str
    version: int | None = None
    accept_findings: tuple[str, ...] = ()
    force: bool = False
    dry_run: bool = False


class UninstallOrder(Frozen):
    skill: str
    force: bool = False
    dry_run: bool = False


class InstallOutcome(Frozen):
    """Of one target; of a dry run what would be."""

    installation: Installation
    action: Literal["created", "replaced", "unchanged"]
    backup: str | None
    """Where the replaced file was kept, if one was."""
    visibility: str
    """Whether the running agent will see the skill, and what to do if it will not."""
    diff: str = ""
    findings: tuple[ScanFinding, ...] = ()
    dry_run: bool = False


class UninstallOutcome(Frozen):
    installation: Installation
    backup: str | None
    """Where the removed file was kept; null where it was gone already."""
    diff: str
    dry_run: bool
    agents: tuple[str, ...] = ()
    """All that read the file: several share a folder."""


class Origin(Frozen):
    """Where a version came from; null where it is not known."""

    reward_model_id: str | None = None
    score: float | None = None
    seed_score: float | None = None
    heldout_gain: float | None = None

    @computed_field  # type: ignore[prop-decorator]
    @property
    def score_kind(self) -> ScoreKind | None:
        """Of `score` and `seed_score`."""
        return None if self.score is None and self.seed_score is None else "in-sample"


class InstalledSkill(Frozen):
    """The last record of a path, and how the file stands now."""

    installation: Installation
    state: SkillState
    origin: Origin
    newer_run: str | None
    """A later run of the same skill whose best candidate is another text."""
    agents: tuple[str, ...] = ()
    """All that read the file: several share a folder."""
    line_ends_changed: bool = False
    """The text is ours but for its line ends, which Git may change."""


class InstalledDetail(Frozen):
    """`diff`: from the file to the text of `version`."""

    skill: InstalledSkill
    versions: tuple[Installation, ...]
    """Oldest first."""
    version: int
    diff: str


class SkillsFolder(Frozen):
    """A folder that an agent reads. `agent_found`: the agent seems to be used here."""

    agent: str
    title: str
    scope: Scope
    path: str
    exists: bool
    agent_found: bool


class Targets(Frozen):
    """`project_from`: why the project is this folder, in words."""

    project_dir: str
    project_from: str
    folders: tuple[SkillsFolder, ...]
