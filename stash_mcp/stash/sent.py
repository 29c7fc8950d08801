"""What is sent to Stash's REST interface; a field that is None is left out, unless it says more."""

from typing import Literal

from pydantic import JsonValue

from stash_mcp.stash.shapes import QuoteShape, Shape


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
