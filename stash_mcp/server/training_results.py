"""What the tools for reward models return."""

from collections.abc import Mapping, Sequence
from datetime import datetime

from pydantic import Field

from stash_mcp.models import JobStatus, RewardModel
from stash_mcp.server.results import Part, Result
from stash_mcp.server.shortening import (
    MODEL_CHARACTERS,
    REASON_CHARACTERS,
    brief,
    fit,
    next_offset,
    rounded,
    shorten,
)
from stash_mcp.server.wording import ending_of_training, next_for_training, where_it_stands


class TrainResult(Result):
    reward_model_id: str
    status: JobStatus
    base_model: str
    traces: int
    pairs: int | None = None
    outcome: str | None = Field(None, description="How it ended, where the answer waited for that")
    next: str

    @classmethod
    def of(cls, model: RewardModel) -> "TrainResult":
        return cls(
            reward_model_id=model.id,
            status=model.status,
            base_model=shorten(model.base_model, MODEL_CHARACTERS),
            traces=model.trace_count,
            pairs=model.num_pairs,
            next=next_for_training(model),
        )

    @classmethod
    def ended(cls, model: RewardModel) -> "TrainResult":
        """The same answer once the training has succeeded."""
        return cls.of(model).model_copy(update={"outcome": ending_of_training(model)})


class ModelRow(Part):
    reward_model_id: str
    name: str
    status: JobStatus
    base_model: str
    traces: int
    pairs: int | None = None
    heldout_accuracy: float | None = Field(
        None, description="Share of held-out pairs ranked right; 0.5 is chance"
    )
    heldout_pairs: int | None = None
    progress: str | None = None
    reason: str | None = Field(None, description="Why it failed")
    created_at: datetime

    @classmethod
    def of(cls, model: RewardModel, places: Mapping[str, int]) -> "ModelRow":
        metrics = model.metrics
        return cls(
            reward_model_id=model.id,
            name=shorten(model.name, MODEL_CHARACTERS),
            status=model.status,
            base_model=shorten(model.base_model, MODEL_CHARACTERS),
            traces=model.trace_count,
            pairs=model.num_pairs,
            heldout_accuracy=None if metrics is None else rounded(metrics.eval_accuracy),
            heldout_pairs=None if metrics is None else metrics.eval_pairs,
            progress=where_it_stands(model, places),
            reason=brief(model.reason, REASON_CHARACTERS),
            created_at=model.created_at,
        )


class ModelList(Result):
    reward_models: tuple[ModelRow, ...]
    total: int
    next_offset: int | None = None
    missing: str | None = Field(None, description="Why Stash's are missing")

    @classmethod
    def of(
        cls,
        models: Sequence[RewardModel],
        places: Mapping[str, int],
        limit: int,
        offset: int,
        missing: str | None,
    ) -> "ModelList":
        rows = fit(ModelRow.of(model, places) for model in models[offset : offset + limit])
        following = next_offset(offset, len(rows), len(models))
        return cls(reward_models=rows, total=len(models), next_offset=following, missing=missing)
