"""The nouns of the product: frozen, typed, without behaviour beyond their own consistency.

Covered: what is stored and what passes between rooms. Not covered: how outside formats become
these (traces/), and what a tool or a command shows (server/, cli/).
"""

from datetime import datetime
from enum import StrEnum
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue, model_validator

from stash_mcp.settings import BackendName, InstallMode

Role = Literal["system", "user", "assistant", "tool"]
Rating = Literal[1, -1]
Granularity = Literal["trace", "step"]

DEFAULT_BASE_MODEL = "Qwen/Qwen3-0.6B"
DEFAULT_MAX_PAIRS = 4000
BUILTIN_REFLECTION = "builtin/comments"
AGENT_REFLECTION = "agent"
"""Each reflection is handed to the agent that is connected."""
CLAUDE_CODE = "claude-code/"
"""Before the name of a model that the installed `claude` command answers with."""


class Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


# --- conversations and what reviewers said of them ---


class Step(Frozen):
    role: Role
    content: str
    tool_name: str | None = None
    tool_input: dict[str, JsonValue] | None = None
    tool_call_id: str | None = None
    metadata: dict[str, JsonValue] = Field(default_factory=dict)


class Trace(Frozen):
    id: str
    title: str | None = None
    metadata: dict[str, JsonValue] = Field(default_factory=dict)
    steps: tuple[Step, ...]


class TraceSummary(Frozen):
    """One row of a list of traces; counts are of unflagged annotations.

    `external_id`: at Stash, the id that the trace was imported with.
    """

    id: str
    external_id: str | None = None
    title: str | None
    steps: int
    positive: int
    negative: int
    comments: int


class Quote(Frozen):
    """The passage of a step that a comment is about, with a little of what stands around it."""

    text: str
    prefix: str = ""
    suffix: str = ""


class Annotation(Frozen):
    """A reviewer's rating and/or comment on a trace (`step_index` null) or on one of its steps."""

    id: str
    trace_id: str
    step_index: int | None = None
    rating: Rating | None = None
    comment: str | None = None
    quote: Quote | None = None
    label_error: bool = False
    label_error_note: str | None = None
    author: str | None = None
    created_at: datetime


class InputFormat(Frozen):
    """How a reward model's checkpoint reads a conversation: version 1 is our own rendering, 3 has
    sections, one of which is the rubric."""

    version: Literal[1, 3] = 1
    rubric: tuple[str, ...] = ()


INPUT_VERSION_1 = InputFormat()


class PreferencePair(Frozen):
    """Two rendered conversations of one granularity, the better one first."""

    chosen: str
    rejected: str
    chosen_trace_id: str
    rejected_trace_id: str
    granularity: Granularity


# --- what a run optimises ---


class Message(Frozen):
    role: str
    content: str


class Example(Frozen):
    """A conversation up to its first assistant step, with the reviewers' comments on the trace."""

    trace_id: str
    system: str | None
    messages: tuple[Message, ...]
    feedback: tuple[str, ...]


class Skipped(Frozen):
    """How many traces were left out for one reason."""

    reason: str
    count: int


class Candidate(Frozen):
    """A proposed skill; `skill` is the whole SKILL.md. Candidate 0 is the seed."""

    number: int
    skill: str
    score: float
    parents: tuple[int, ...] = ()
    scores: dict[str, float] = Field(default_factory=dict)
    """Score of each example, by trace id; 0 to 1."""


# --- jobs: trainings and runs, drained by the worker one at a time ---


class JobStatus(StrEnum):
    QUEUED = "queued"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"

    @property
    def is_final(self) -> bool:
        return self in (JobStatus.SUCCEEDED, JobStatus.FAILED, JobStatus.CANCELLED)


class TrainRequest(Frozen):
    """What a training does. Its pairs are in the job folder."""

    base_model: str = DEFAULT_BASE_MODEL
    epochs: int = Field(1, ge=1, le=100)
    max_pairs: int = Field(DEFAULT_MAX_PAIRS, ge=2)
    learning_rate: float = Field(1e-5, gt=0, le=1)
    trace_ids: tuple[str, ...] = ()
    num_pairs: int = 0
    imported_from: str | None = None
    """Name of the archive or folder a checkpoint was imported from; then nothing was trained."""


class TrainMetrics(BaseModel):
    """`eval_accuracy` is null where no split by trace was usable; the reason stands beside it."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    train_pairs: int
    eval_pairs: int
    eval_accuracy: float | None
    eval_split: str = "trace"
    excluded_cross_trace_pairs: int = 0
    final_loss: float
    epochs: int
    device: str
    seconds: float
    eval_accuracy_reason: str | None = None
    length_accuracy: float | None = None
    """Accuracy on the same held-out pairs of "the shorter conversation is better"."""
    max_length: int | None = None
    """Tokens kept of each text; a base with fewer positions than asked for lowers it."""

    @property
    def by_length(self) -> float | None:
        """Accuracy of ranking by length, the better way round; None where it was not measured."""
        shorter = self.length_accuracy
        return None if shorter is None else max(shorter, 1 - shorter)


class RewardModel(Frozen):
    id: str
    backend: BackendName = "local"
    name: str
    base_model: str
    status: JobStatus
    epochs: int
    max_pairs: int
    trace_count: int
    num_pairs: int | None
    metrics: TrainMetrics | None
    reason: str | None
    """Why it failed, in a sentence or two; `error` is the end of its log."""
    error: str | None
    imported_from: str | None
    heartbeat_at: datetime | None = None
    """When its worker last gave a sign of life."""
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    progress: "Progress | None"
    """None at Stash, which does not tell it."""
    stalled: str | None = None
    """Why it stays in the queue, where no worker can come to it."""


class AdoptedSkill(Frozen):
    """An installed SKILL.md that is a run's seed, as it stood on disk when the run was started.

    path: of the file. sha256: of its bytes. edited: by hand, since it was installed.
    """

    path: str
    sha256: str
    body: str
    edited: bool


class StashRunRequest(Frozen):
    """What Stash tells of what a run of it does."""

    reward_model_id: str
    task_model: str
    task_api_base: str | None = None
    reflection_model: str
    max_metric_calls: int


class RemoteResult(Frozen):
    """What a run of Stash came to, for measuring it again here. run_id: as people see it."""

    run_id: str
    seed: "Skill"
    best: "Skill"
    seed_score: float
    best_score: float
    trace_ids: int
    """How many conversations its search saw; those that are still there are the examples."""


class RunRequest(Frozen):
    """What a run does. Its examples are in the job folder."""

    reward_model_id: str
    task_model: str
    task_api_base: str | None = None
    reflection_model: str
    reflection_api_base: str | None = None
    max_metric_calls: int = Field(ge=1)
    skill_name: str | None = None
    skill_description: str | None = None
    random_seed: int = 0
    adopted: AdoptedSkill | None = None
    """The first body; None takes the description, which is the usual seed."""
    measured: RemoteResult | None = None
    """Nothing is optimised: this seed and this best are measured against each other."""
    minibatch_size: int = Field(3, ge=1)
    proposals_at_once: int = Field(1, ge=1, le=16)
    max_concurrency: int = Field(8, ge=1, le=256)
    heldout: int = Field(0, ge=0)
    """How many of the examples, the last ones of the job's file, are kept for the final measure."""
    max_cost_usd: float | None = Field(None, gt=0)
    max_seconds: float | None = Field(None, gt=0)
    """Of work; the time between a death and the next worker does not count."""
    no_improvement_for: int | None = Field(None, ge=1)
    """Stop after so many proposals in a row without a new best."""
    fresh: bool = False
    """Take no answer that another run paid for."""

    @model_validator(mode="before")
    @classmethod
    def _with_present_names(cls, fields: Any) -> Any:
        # Stored by an earlier version, in which the random seed was called `seed`.
        if isinstance(fields, dict) and "seed" in fields and "random_seed" not in fields:
            return {("random_seed" if key == "seed" else key): fields[key] for key in fields}
        return fields


class Plan(Frozen):
    """What a run will do, known before anything is spent.

    A metric call is one reply of the task model and its score.
    """

    examples: int
    heldout_examples: int
    skipped: tuple[Skipped, ...]
    commented_examples: int
    max_metric_calls: int
    proposals_at_best: int
    """If no proposal is accepted: an accepted one is scored on every example."""
    proposals_at_worst: int
    task_calls_at_most: int
    reflection_calls_at_most: int
    prompt_tokens_estimate: int
    """Task model's input, from the length of the texts at 4 characters a token."""
    cost_usd_estimate: float | None = None
    """If every call is made; null where a price is not known."""
    notes: tuple[str, ...] = ()


class Usage(Frozen):
    """Calls answered by one model and what they took; cost in US dollars, null if unpriced."""

    calls: int = 0
    remembered: int = 0
    """Answers that were paid for before and cost nothing now; not among `calls`."""
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost_usd: float | None = None


class Progress(Frozen):
    """Where a job stands; every count is 0 until it is known."""

    phase: str = "waiting"
    done: int = 0
    total: int = 0
    """Of the present phase: examples of a batch, or training steps."""
    metric_calls: int = 0
    max_metric_calls: int = 0
    proposals: int = 0
    refused_proposals: int = 0
    candidates: int = 0
    seed_score: float | None = None
    best_score: float | None = None
    estimate_seconds: float | None = None
    """Rough time left, from the pace so far."""
    active_seconds: float = 0.0
    """Time that workers have spent on it."""
    task_usage: Usage = Usage()
    reflection_usage: Usage = Usage()


class Heldout(Frozen):
    """Seed and best on conversations that the optimisation never saw.

    `gain` is the mean of the paired differences; `low` and `high` bound its 95 % interval.
    """

    examples: int
    seed_score: float
    best_score: float
    gain: float
    low: float
    high: float


StopReason = Literal[
    "budget", "cost", "time", "no_improvement_for", "perfect", "cancelled", "measured"
]
"""What ended a run's search."""


class RunResult(BaseModel):
    """`result.json` of a run. Scores are means over the examples, 0 to 1."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    skill_name: str
    skill_description: str
    best_skill: str
    best_score: float
    seed_skill: str
    seed_score: float
    candidates: tuple["ScoredSkill", ...]
    best_candidate: int = 0
    heldout: Heldout | None = None
    remeasured: Heldout | None = None
    """Of a run of Stash, on the conversations that its search saw: not held out from that."""
    verdict: str = ""
    """In plain words, whether the skill helped and how far that can be believed."""
    stop_reason: "StopReason" = "budget"
    failed_examples: int = 0
    """Evaluations of the best candidate whose request the task model rejected; they scored 0."""


class ScoredSkill(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")

    skill: str
    score: float


InstallState = Literal["waiting", "installed", "staged", "off"]


class InstallTarget(Frozen):
    """A skills folder, absolute, of one agent at one scope."""

    agent: str
    scope: Literal["project", "user", "folder"]
    skills_dir: str


class InstallWish(Frozen):
    """What happens to a run's skill when the run ends.

    auto: the best candidate is installed into every target, if it beats the seed by more than
    `min_gain` and nothing stands against it; else it is staged, with the reason. ask: it is staged.
    """

    mode: InstallMode = "auto"
    targets: tuple[InstallTarget, ...] = ()
    min_gain: float = Field(0.0, ge=0, le=1)


Listener = Literal["agent", "command"]


class Notice(Frozen):
    """What a person has to be told of the skill of a run that ended."""

    run_id: str
    state: InstallState
    note: str


class Run(Frozen):
    """`plan` and `progress` are None at Stash, which does not tell them."""

    id: str
    backend: BackendName = "local"
    status: JobStatus
    request: StashRunRequest | RunRequest
    plan: Plan | None
    progress: Progress | None
    skill_name: str | None
    skill_description: str | None
    seed_score: float | None
    best_score: float | None
    best_candidate: int | None
    heldout: Heldout | None
    verdict: str | None
    stop_reason: StopReason | None
    partial: bool
    """It was stopped early; its candidates are those scored until then."""
    heartbeat_at: datetime | None
    """When its worker last gave a sign of life."""
    install: InstallWish
    install_state: InstallState
    install_note: str | None
    """What was installed, or why it was only staged."""
    reflections_waiting: tuple[int, ...] = ()
    """Numbers of the reflections that wait for the agent."""
    reason: str | None
    """Why it failed, in a sentence or two; `error` is the end of its log."""
    error: str | None
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    stalled: str | None = None
    """Why it stays in the queue, where no worker can come to it."""

    @property
    def adopted(self) -> AdoptedSkill | None:
        """The installed skill that it started from."""
        return self.request.adopted if isinstance(self.request, RunRequest) else None


class JobKind(StrEnum):
    TRAIN = "train"
    GEPA = "gepa"


class Job(Frozen):
    """One row of the queue: a training or a run."""

    id: str
    kind: JobKind
    name: str
    status: JobStatus
    request: dict[str, Any]
    plan: dict[str, Any]
    progress: Progress
    result: dict[str, Any] | None
    reason: str | None
    error: str | None
    attempts: int
    deaths: int
    """Of workers, in a row at `death_place`."""
    death_place: str | None
    needs: tuple[str, ...]
    """Names of variables that its starter's environment had and its worker's must have."""
    go: int
    """Counts from 1; a resume begins the next one, a kill does not."""
    parked: bool = False
    """Running, but no worker takes it until the agent has answered its reflections."""
    install: InstallWish
    install_state: InstallState
    install_note: str | None
    heartbeat_at: datetime | None
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None


ReflectionKind = Literal["body", "identity"]
ReflectionState = Literal["pending", "answered", "remembered", "closed"]
"""remembered: answered in another run. closed: the run went another way and asks it no more."""


class Reflection(Frozen):
    """One question of a run to the agent. A body is asked for, or a name and a description, of
    which `answer` then is JSON text. `present`: the body that the new one must differ from."""

    run_id: str
    number: int
    kind: ReflectionKind
    prompt: str
    present: str
    state: ReflectionState
    answer: str | None
    asked_at: datetime
    answered_at: datetime | None


class Submission(Frozen):
    """An agent's answer to a reflection: a body, or a name and a description."""

    run_id: str
    number: int
    body: str | None = None
    name: str | None = None
    description: str | None = None


class Event(Frozen):
    """One line of a job's history."""

    number: int
    at: datetime
    message: str


# --- skills ---


class Skill(Frozen):
    name: str
    description: str
    body: str


class Installation(Frozen):
    """What we wrote: the file's place, its SHA-256 and where the skill came from."""

    path: str
    name: str
    agent: str
    scope: Literal["project", "user", "folder"]
    run_id: str
    candidate: int
    sha256: str
    installed_at: datetime
    version: int = 1
    """Counts from 1 at each path; taking a skill away is recorded, but is no version."""
    kind: Literal["install", "rollback", "uninstall", "adopt"] = "install"
    """adopt: a person's edit that became the seed of `run_id` and was replaced by its skill."""


RemoteResult.model_rebuild()
RunRequest.model_rebuild()
RewardModel.model_rebuild()
RunResult.model_rebuild()
