"""What Stash's REST interface answers with: frozen, tolerant of more fields, strict about types.

What older servers leave out is optional. Ids can stand in a path and in a file's name. A null where
nothing is lost by it counts as what it stands for.
"""

from datetime import UTC, datetime
from typing import Annotated, Any, Generic, Literal, TypeGuard, TypeVar, get_args

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    FiniteFloat,
    JsonValue,
    NonNegativeInt,
    StringConstraints,
    TypeAdapter,
)
from pydantic_core import PydanticCustomError

from stash_mcp.models import Role
from stash_mcp.redaction import MASK

StashId = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_-]{1,128}$")]
_JobState = Literal["queued", "running", "succeeded", "failed"]


def _known_state(value: object) -> object:
    if isinstance(value, str) and value not in get_args(_JobState):
        raise PydanticCustomError(
            "state",
            "'{state}' is a state that this version of stash-skills does not know",
            {"state": value},
        )
    return value


JobState = Annotated[_JobState, BeforeValidator(_known_state)]


def _aware(moment: datetime) -> datetime:
    if moment.tzinfo is None:
        raise ValueError("a time without its zone")
    try:
        moment.astimezone(UTC)
    except OverflowError:
        raise ValueError("a time out of range") from None
    return moment


Moment = Annotated[datetime, AfterValidator(_aware)]
_OrNone = BeforeValidator(lambda value: value if isinstance(value, dict) else None)
_OrEmpty = BeforeValidator(lambda value: "" if value is None else value)

T = TypeVar("T", bound=BaseModel)


class Shape(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore", strict=True)


# --- what holds many ---


class Unread(Shape):
    """A row that does not fit, by what could be read of it. why: without a full stop."""

    why: str
    id: str | None = None
    external_id: str | None = None
    trace_id: str | None = None
    created_at: datetime | None = None

    @property
    def named(self) -> str:
        return f"{self.id}: {self.why}" if self.id else self.why


class Holding(Shape):
    """Has rows of which each stands for itself; those that do not fit are in `unread`."""

    unread: tuple[Unread, ...] = ()


class Listed(Holding, Generic[T]):
    """A bare list."""

    rows: tuple[T, ...]


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


class TracePageShape(Holding):
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
    prefix: Annotated[str, _OrEmpty] = ""
    suffix: Annotated[str, _OrEmpty] = ""


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


class TraceShape(TraceSummaryShape, Holding):
    """`unread`: of its annotations."""

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
    """`trace_ids` and `progress` come with a single model only; `metrics` is as it was given, None
    where it is no object."""

    name: str
    base_model: str
    compute: str | None = None
    epochs: int
    max_pairs: int
    trace_count: NonNegativeInt = 0
    num_pairs: NonNegativeInt | None = None
    metrics: Annotated[dict[str, JsonValue] | None, _OrNone] = None
    trace_ids: tuple[StashId, ...] | None = None
    training_config: dict[str, JsonValue] | None = None
    progress: JsonValue = None


class CandidateShape(Shape):
    """Stash gives no numbers: they are its place in the list, from 0, the seed.

    So one that cannot be read keeps its place, with None for what is no text or no finite number:
    otherwise those after it would be called by the numbers of others.
    """

    skill: str | None
    score: float | None


def _candidate(value: object) -> dict[str, object]:
    given = value if isinstance(value, dict) else {}
    skill, score = given.get("skill"), given.get("score")
    return {
        "skill": skill if isinstance(skill, str) else None,
        "score": float(score) if _is_score(score) else None,
    }


def _is_score(value: object) -> TypeGuard[int | float]:
    """Neither infinite nor NaN, nor an integer that is no float."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return abs(value) < _LARGEST_SCORE


_LARGEST_SCORE = 1e300
Candidate = Annotated[CandidateShape, BeforeValidator(_candidate)]


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
    candidates: tuple[Candidate, ...] | None = None


class WeightsUrlShape(Shape):
    """Whoever has the URL can read the file for some minutes."""

    url: str

    def __repr_args__(self) -> list[tuple[str | None, Any]]:
        return [("url", MASK)]


FORMATS = TypeAdapter(tuple[FormatShape, ...])
IMPORT = TypeAdapter(ImportShape)
TRACE_SUMMARY = TypeAdapter(TraceSummaryShape)
TRACE_PAGE = TypeAdapter(TracePageShape)
TRACE = TypeAdapter(TraceShape)
ANNOTATION = TypeAdapter(AnnotationShape)
EXPORTED_ANNOTATION = TypeAdapter(ExportedAnnotationShape)
REWARD_MODEL = TypeAdapter(RewardModelShape)
REWARD_MODELS = TypeAdapter(Listed[RewardModelShape])
RUN = TypeAdapter(RunShape)
RUNS = TypeAdapter(Listed[RunShape])
WEIGHTS_URL = TypeAdapter(WeightsUrlShape)
