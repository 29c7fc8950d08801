"""The objects of Stash's REST interface: frozen, tolerant of more fields, strict about types.

What older servers leave out is optional. Ids can stand in a path and in a file's name.
"""

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    FiniteFloat,
    JsonValue,
    NonNegativeInt,
    StringConstraints,
    TypeAdapter,
)

from stash_mcp.models import Role
from stash_mcp.redaction import MASK

StashId = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_-]{1,128}$")]
JobState = Literal["queued", "running", "succeeded", "failed"]


def _aware(moment: datetime) -> datetime:
    if moment.tzinfo is None:
        raise ValueError("a time without its zone")
    return moment


Moment = Annotated[datetime, AfterValidator(_aware)]


class Shape(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore", strict=True)


# --- traces and annotations ---


class FormatShape(Shape):
    name: str
    description: str = ""


class ImportShape(Shape):
    """`trace_ids` are Stash's own, in the order of what was sent."""

    format: str
    imported: NonNegativeInt
    trace_ids: tuple[StashId, ...]


class TraceSummaryShape(Shape):
    """`external_id` is the `id` that the trace was imported with."""

    id: StashId
    external_id: str | None = None
    title: str | None = None
    source_format: str | None = None
    step_count: NonNegativeInt = 0
    positive_count: NonNegativeInt = 0
    negative_count: NonNegativeInt = 0
    comment_count: NonNegativeInt = 0
    label_error_count: NonNegativeInt = 0
    created_at: Moment | None = None


class TracePageShape(Shape):
    traces: tuple[TraceSummaryShape, ...]
    total: NonNegativeInt


class StepShape(Shape):
    id: StashId
    index: NonNegativeInt
    role: Role
    content: str
    tool_name: str | None = None
    tool_input: dict[str, JsonValue] | None = None
    tool_call_id: str | None = None
    metadata: dict[str, JsonValue] | None = None


class QuoteShape(Shape):
    text: str
    prefix: str = ""
    suffix: str = ""


class AnnotationShape(Shape):
    id: StashId
    trace_id: StashId
    step_id: StashId | None = None
    rating: Literal[1, -1] | None = None
    comment: str | None = None
    quote: QuoteShape | None = None
    label_error: bool = False
    label_error_note: str | None = None
    author_id: str | None = None
    author_name: str | None = None
    created_at: Moment


class TraceShape(TraceSummaryShape):
    metadata: dict[str, JsonValue] | None = None
    steps: tuple[StepShape, ...]
    annotations: tuple[AnnotationShape, ...] = ()


class ExportedAnnotationShape(Shape):
    trace_id: StashId
    trace_external_id: str | None = None
    step_index: NonNegativeInt | None = None
    rating: Literal[1, -1] | None = None
    comment: str | None = None
    quote: QuoteShape | None = None
    label_error: bool = False
    label_error_note: str | None = None
    author: str | None = None
    created_at: Moment


# --- reward models and runs ---


class JobShape(Shape):
    id: StashId
    status: JobState
    error: str | None = None
    created_at: Moment
    started_at: Moment | None = None
    finished_at: Moment | None = None

    @property
    def is_final(self) -> bool:
        return self.status in ("succeeded", "failed")


class RewardModelShape(JobShape):
    """`trace_ids` and `progress` come with a single model only; `metrics` is as it was given."""

    name: str
    base_model: str
    compute: str | None = None
    epochs: int
    max_pairs: int
    trace_count: NonNegativeInt = 0
    num_pairs: NonNegativeInt | None = None
    metrics: dict[str, JsonValue] | None = None
    trace_ids: tuple[StashId, ...] | None = None
    training_config: dict[str, JsonValue] | None = None
    progress: JsonValue = None


class CandidateShape(Shape):
    """Stash gives no numbers: they are its place in the list, from 0, the seed."""

    skill: str
    score: FiniteFloat


class RunShape(JobShape):
    """Scores are in-sample: of the conversations that the run optimised on."""

    reward_model_id: StashId
    skill_name: str | None = None
    skill_description: str | None = None
    task_model: str
    task_api_base: str | None = None
    reflection_model: str
    max_metric_calls: int
    seed_skill: str | None = None
    seed_score: FiniteFloat | None = None
    best_skill: str | None = None
    best_score: FiniteFloat | None = None
    candidates: tuple[CandidateShape, ...] | None = None


class WeightsUrlShape(Shape):
    """Whoever has the URL can read the file for some minutes."""

    url: str

    def __repr_args__(self) -> list[tuple[str | None, Any]]:
        return [("url", MASK)]


# --- what is sent ---


class RunStart(Shape):
    """What is left out takes the server's default."""

    reward_model_id: str
    task_model: str | None = None
    task_api_base: str | None = None
    reflection_model: str | None = None
    max_metric_calls: int | None = None


class Training(Shape):
    """`trace_ids` are Stash's own, one at least."""

    name: str
    trace_ids: tuple[str, ...]
    base_model: str | None = None
    epochs: int | None = None
    max_pairs: int | None = None
    training_config: dict[str, JsonValue] | None = None


class AnnotationStart(Shape):
    step_id: str | None = None
    rating: Literal[1, -1] | None = None
    comment: str | None = None
    quote: QuoteShape | None = None


class AnnotationChange(Shape):
    """Only the fields that were given are sent: null is a value here."""

    rating: Literal[1, -1] | None = None
    comment: str | None = None
    label_error: bool | None = None
    label_error_note: str | None = None


FORMATS = TypeAdapter(tuple[FormatShape, ...])
IMPORT = TypeAdapter(ImportShape)
TRACE_PAGE = TypeAdapter(TracePageShape)
TRACE = TypeAdapter(TraceShape)
ANNOTATION = TypeAdapter(AnnotationShape)
EXPORTED_ANNOTATION = TypeAdapter(ExportedAnnotationShape)
REWARD_MODEL = TypeAdapter(RewardModelShape)
REWARD_MODELS = TypeAdapter(tuple[RewardModelShape, ...])
RUN = TypeAdapter(RunShape)
RUNS = TypeAdapter(tuple[RunShape, ...])
WEIGHTS_URL = TypeAdapter(WeightsUrlShape)
