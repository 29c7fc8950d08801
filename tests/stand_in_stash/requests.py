"""What the API accepts, as strictly as its contract says: an unknown key is refused everywhere."""

from typing import Any, Literal
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field


class _Request(BaseModel):
    model_config = ConfigDict(extra="forbid")


class ImportRequest(_Request):
    format: str
    data: str


class Quote(_Request):
    text: str = Field(min_length=1)
    prefix: str
    suffix: str


class AnnotationRequest(_Request):
    step_id: UUID | None = None
    rating: Literal[1, -1] | None = None
    comment: str | None = None
    quote: Quote | None = None


class AnnotationUpdate(_Request):
    rating: Literal[1, -1] | None = None
    comment: str | None = None
    label_error: bool | None = None
    label_error_note: str | None = None


class TrainRequest(_Request):
    name: str = Field(min_length=1)
    trace_ids: list[UUID] = Field(min_length=1)
    base_model: str = "Qwen/Qwen3-0.6B"
    epochs: int = Field(1, ge=1)
    max_pairs: int = Field(4000, ge=2)
    training_config: dict[str, Any] | None = None


class RunRequest(_Request):
    reward_model_id: UUID
    task_model: str = Field("anthropic/claude-haiku-4-5", min_length=1)
    task_api_base: str | None = None
    reflection_model: str = Field("anthropic/claude-sonnet-5", min_length=1)
    max_metric_calls: int = Field(40, ge=1)


class OlderRunRequest(RunRequest):
    skill_name: str
    skill_description: str


class PageRequest(_Request):
    limit: int = Field(50, ge=1, le=500)
    offset: int = Field(0, ge=0)
