"""Reward models and their trainings."""

from datetime import datetime

from pydantic import BaseModel, ConfigDict, Field

from stash_mcp.models.base import Frozen
from stash_mcp.models.jobs import JobStatus, Progress
from stash_mcp.settings import BackendName

DEFAULT_BASE_MODEL = "Qwen/Qwen3-0.6B"
DEFAULT_MAX_PAIRS = 4000


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
    as_seen: str | None = None
    """Of one of Stash that is shown as it was last seen: why it could not be asked for."""
