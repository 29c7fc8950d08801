"""The interface of a backend: what the server's tools and the command ask for.

Invariants: every method is synchronous, may be called from any thread, and either does what it
says or raises a `StashSkillsError`; a refused call changes nothing. What a backend cannot do it
refuses with `UnsupportedError`. Starting a training or a run returns within a second.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

from pydantic import Field, JsonValue

from stash_mcp.backends.installations import (
    InstalledDetail,
    InstalledSkill,
    InstallOrder,
    InstallOutcome,
    RollbackOrder,
    Targets,
    UninstallOrder,
    UninstallOutcome,
)
from stash_mcp.backends.installations import Scope as Scope
from stash_mcp.models import (
    DEFAULT_BASE_MODEL,
    DEFAULT_MAX_PAIRS,
    Annotation,
    Candidate,
    Event,
    Frozen,
    Listener,
    Notice,
    Quote,
    Rating,
    Reflection,
    RemoteResult,
    RewardModel,
    Run,
    Submission,
    Trace,
    TraceSummary,
)
from stash_mcp.settings import BackendName, InstallMode


class ImportReport(Frozen):
    """What an import stored; `unchanged` traces were known with the same steps.

    Counts are null at Stash, which does not tell them.
    """

    backend: BackendName = "local"
    format: str
    imported: int
    added: int | None
    replaced: int | None
    unchanged: int | None
    annotations_removed: int | None
    """Annotations on steps that the import replaced."""
    annotations_added: int
    trace_ids: tuple[str, ...]


class AnnotationDraft(Frozen):
    trace_id: str
    step_index: int | None = None
    rating: Rating | None = None
    comment: str | None = None
    quote: Quote | None = None
    author: str | None = None


class TracePage(Frozen):
    """missing: what of Stash's could not be read, in words; unread: how many of this page."""

    traces: tuple[TraceSummary, ...]
    total: int
    unread: int = 0
    missing: str | None = None


class TraceDetail(Frozen):
    """missing: which annotations of Stash's could not be read, in words."""

    trace: Trace
    annotations: tuple[Annotation, ...]
    missing: str | None = None


class TrainOrder(Frozen):
    """`trace_ids`: ids or patterns with `*`; null means every trace of the library.

    `training_config`: settings that Stash hands to its training; of Stash alone.
    """

    name: str | None = None
    base_model: str = DEFAULT_BASE_MODEL
    epochs: int = Field(1, ge=1, le=100)
    max_pairs: int = Field(DEFAULT_MAX_PAIRS, ge=2)
    learning_rate: float = Field(1e-5, gt=0, le=1)
    trace_ids: tuple[str, ...] | None = None
    training_config: dict[str, JsonValue] | None = None


class RunOrder(Frozen):
    """`trace_ids`: ids or patterns with `*`; null means the reward model's own traces.

    `max_metric_calls` null means enough for at least six proposals, and 40 or more.
    `heldout` keeps a part of the conversations for the final measure where there are enough.
    """

    reward_model_id: str
    task_model: str
    reflection_model: str = ""
    """"" takes the default of where the run is done."""
    task_api_base: str | None = None
    reflection_api_base: str | None = None
    max_metric_calls: int | None = Field(None, ge=1)
    skill_name: str | None = None
    skill_description: str | None = None
    trace_ids: tuple[str, ...] | None = None
    random_seed: int = 0
    seed: str = "default"
    """The first body: `default` (the description), `installed` (that of the installed skill that
    is called skill_name, or of the only one at this order's targets), or the name or path of an
    installed skill."""
    minibatch_size: int = Field(3, ge=1)
    proposals_at_once: int = Field(1, ge=1, le=16)
    max_concurrency: int = Field(8, ge=1, le=256)
    heldout: bool = True
    max_cost_usd: float | None = Field(None, gt=0)
    max_seconds: float | None = Field(None, gt=0)
    no_improvement_for: int | None = Field(None, ge=1)
    fresh: bool = False
    """Take no answer that another run paid for."""
    new: bool = False
    """Start another run even where an equal one is queued, running or succeeded."""
    install: InstallMode | None = None
    """What happens to the skill at the run's end; null takes the default of the settings."""
    install_agents: tuple[str, ...] = ("claude-code",)
    install_scope: Scope = "project"
    min_gain: float = Field(0.0, ge=0, le=1)
    """Over the seed, held out where that was measured; what is below it is only staged."""


class StartedRun(Frozen):
    """`existing`: an equal run was there already; nothing was started."""

    run: Run
    existing: bool
    warnings: tuple[str, ...] = ()
    """Sentences on what will probably stop it, for the person to be told at once."""


class WaitingReflection(Frozen):
    """`reflection`: the one that was asked for, or the first that waits; null where none does.
    `waiting`: the numbers of all that wait."""

    run: Run
    reflection: Reflection | None
    waiting: tuple[int, ...]


class CacheReport(Frozen):
    """Answers that were paid for and are kept."""

    entries: int
    bytes: int


class LogPart(Frozen):
    text: str
    next_offset: int
    """In bytes; where to read on."""


class DiskUse(Frozen):
    """Bytes, by what they are for."""

    home: str
    library: int
    calls: int
    runs: int
    reward_models: int
    backups: int


class PruneReport(Frozen):
    run_ids: tuple[str, ...]
    bytes: int
    kept_installed: int
    """Runs as old that stay because a skill of theirs is installed."""
    dry_run: bool


class Side(Protocol):
    """What is done on one side: on this machine, or at Stash. What a side cannot do it refuses."""

    def import_traces(
        self, data: bytes, *, format: str = "auto", annotations: bytes | None = None
    ) -> ImportReport:
        """Store the conversations of `data` and the annotations, all or none."""

    def import_annotations(self, data: bytes) -> int:
        """Store annotations on traces of the library, all or none; returns how many were new."""

    def export_traces(self) -> Iterator[str]:
        """The library's traces as JSONL lines without line ends, in the Stash Trace Format."""

    def export_annotations(self) -> Iterator[str]:
        """The library's annotations as JSONL lines without line ends."""

    def annotate(self, draft: AnnotationDraft) -> Annotation: ...

    def flag_annotation(self, annotation_id: str, note: str | None, *, flagged: bool) -> Annotation:
        """Mark a label as wrong, or take the mark back: it stays, out of training and of runs."""

    def list_traces(
        self, *, limit: int, offset: int, text: str | None = None, commented: bool | None = None
    ) -> TracePage: ...

    def get_trace(self, trace_id: str) -> TraceDetail: ...

    def train_reward_model(self, order: TrainOrder) -> RewardModel: ...

    def export_reward_model(self, reward_model_id: str, path: Path) -> Path:
        """Write the checkpoint as a tar.gz with the one top folder `reward-model/`."""

    def list_reward_models(self) -> list[RewardModel]:
        """Newest first."""

    def get_reward_model(self, reward_model_id: str) -> RewardModel: ...

    def start_run(self, order: RunOrder) -> StartedRun:
        """Queue a run, or find the equal one that is queued, running or succeeded already."""

    def cancel(self, job_id: str) -> Run | None:
        """Stop a run or a training; of a run what is scored so far stays usable, as partial."""

    def resume_run(self, run_id: str) -> Run:
        """Carry on a failed or cancelled run; what was paid for is not paid again."""

    def read_log(self, job_id: str, *, offset: int = 0) -> LogPart: ...

    def get_run(self, run_id: str) -> Run: ...

    def list_runs(self) -> list[Run]:
        """Newest first."""

    def get_reflection(self, run_id: str, number: int | None = None) -> WaitingReflection:
        """What a run with the reflection model `agent` asks the agent."""

    def submit_reflection(self, submission: Submission) -> Run:
        """Answer one that waits. Raises ReflectionRefusedError, with what is wrong, for an answer
        that breaks a rule; the reflection waits on then."""

    def events(self, job_id: str, *, after: int = 0) -> list[Event]:
        """What happened to a run or a training since event number `after`, oldest first."""

    def list_candidates(self, run_id: str) -> list[Candidate]:
        """By number; while the run goes on, those scored so far."""

    def unreached(self) -> str | None:
        """Why the last list of runs or reward models came without those of Stash, or without some
        of them, in words."""


class Backend(Side, Protocol):
    """Both sides behind one door, and what only this machine does: installing, keeping house."""

    def at(self, name: BackendName | None) -> Side:
        """The side of this name; None: whichever the ids say, or else the setting."""

    def close(self) -> None:
        """End the connections that are open; a later call opens them again."""

    def known_runs(self) -> list[Run]:
        """Newest first. Asks nobody: of Stash's runs those that this library knows, as they were
        last seen."""

    def import_reward_model(self, path: Path, name: str | None = None) -> RewardModel:
        """Take a checkpoint (a folder, or a tar.gz of one) into the library after checking it."""

    def measure(self, measured: RemoteResult, order: RunOrder) -> StartedRun:
        """Queue a measure, on this machine, of what a run of Stash came to; or find the equal one.

        order: with which reward model, task model and conversations of the library.
        """

    def cache(self) -> CacheReport: ...

    def clear_cache(self) -> CacheReport: ...

    def disk_use(self) -> DiskUse: ...

    def prune(self, *, older_than_days: float, dry_run: bool) -> PruneReport: ...

    def reconcile(self, *, at_once: bool = False) -> list[Notice]:
        """Install or stage the skills of finished runs that asked for it; each once.

        What may pass, such as a full disk, puts one off for a pause; at_once: ends those pauses.
        """

    def take_notices(self, listener: Listener = "agent") -> list[Notice]:
        """What was installed, staged or put off and this listener was not told yet. A server tells
        its agent once of all that happened since it started and of what nobody was told before; a
        person is told once, at a command.
        """

    def install_skill(self, order: InstallOrder) -> tuple[InstallOutcome, ...]:
        """One outcome for each agent, in this order; if one target refuses, none is written."""

    def list_installed_skills(self) -> list[InstalledSkill]:
        """Everything that was installed, with those that were taken away again."""

    def get_installed_skill(self, skill: str, version: int | None = None) -> InstalledDetail:
        """One of them, by name or path, compared with `version`; null means the last one."""

    def rollback_skill(self, order: RollbackOrder) -> InstallOutcome: ...

    def uninstall_skill(self, order: UninstallOrder) -> UninstallOutcome: ...

    def targets(self) -> Targets:
        """The skills folders of all agents that are known, and which of them are there."""
