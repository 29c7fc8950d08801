"""Whether something that Stash lists is what a request of ours, whose answer was lost, has made.

`since`: the earliest time, by the server's clock, at which it can have been made.
"""

from datetime import datetime

from stash_mcp.stash.sent import AnnotationStart, RunStart, Training
from stash_mcp.stash.shapes import AnnotationShape, RewardModelShape, RunShape

_COMPARED = {"name", "base_model", "epochs", "max_pairs"}


def is_start_of(order: RunStart, run: RunShape, since: datetime) -> bool:
    """By every parameter that the order gives: the server chose the others."""
    given = order.model_dump(exclude_none=True)
    made = run.model_dump(include=set(given))
    return run.created_at >= since and given == made


def is_training_of(order: Training, model: RewardModelShape, since: datetime) -> bool:
    """By number of traces too; a list does not name them."""
    given = order.model_dump(exclude_none=True, include=_COMPARED)
    made = model.model_dump(include=set(given))
    same_count = model.trace_count == len(set(order.trace_ids))
    return model.created_at >= since and same_count and given == made


def is_annotation_of(order: AnnotationStart, known: AnnotationShape, since: datetime) -> bool:
    made = AnnotationStart(
        step_id=known.step_id, rating=known.rating, comment=known.comment, quote=known.quote
    )
    return known.created_at >= since and made == order
