"""Runs: what they are asked, what they plan, what came of them."""

from datetime import datetime
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from stash_mcp.models.base import Frozen
from stash_mcp.models.conversations import Skipped
from stash_mcp.models.jobs import JobStatus, Progress
from stash_mcp.models.skills import InstallState, InstallWish, Skill
from stash_mcp.settings import BackendName

BUILTIN_REFLECTION = "builtin/comments"
AGENT_REFLECTION = "agent"
"""Each reflection is handed to the agent that is connected."""
CLAUDE_CODE = "claude-code/"
"""Before the name of a model that the installed `claude` command answers with."""


ScoreKind = Literal["in-sample", "held-out"]
"""in-sample: of the conversations that the search itself saw, where the best of several looks
better than it is. held-out: of conversations that it never saw."""


class Candidate(Frozen):
    """A proposed skill; `skill` is the whole SKILL.md. Candidate 0 is the seed."""

    number: int
    skill: str
    score: float
    parents: tuple[int, ...] = ()
    scores: dict[str, float] = Field(default_factory=dict)
    """Score of each example, by trace id; 0 to 1."""


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


class ScoredSkill(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")

    skill: str
    score: float


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
    candidates: tuple[ScoredSkill, ...]
    best_candidate: int = 0
    heldout: Heldout | None = None
    remeasured: Heldout | None = None
    """Of a run of Stash, on the conversations that its search saw: not held out from that."""
    verdict: str = ""
    """In plain words, whether the skill helped and how far that can be believed."""
    stop_reason: StopReason = "budget"
    failed_examples: int = 0
    """Evaluations of the best candidate whose request the task model rejected; they scored 0."""


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
    as_seen: str | None = None
    """Of a run of Stash that is shown as it was last seen: why it could not be asked for."""

    @property
    def score_kind(self) -> ScoreKind | None:
        """Of `seed_score` and `best_score`, at either backend; `heldout` has the others."""
        scores = [self.seed_score, self.best_score]
        if self.progress is not None:
            scores += [self.progress.seed_score, self.progress.best_score]
        return None if scores.count(None) == len(scores) else "in-sample"

    @property
    def adopted(self) -> AdoptedSkill | None:
        """The installed skill that it started from."""
        return self.request.adopted if isinstance(self.request, RunRequest) else None


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
