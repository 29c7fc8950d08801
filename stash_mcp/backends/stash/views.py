"""What Stash tells, as the conversations, reward models and runs that people see.

Covered: ids with their prefix, candidates with numbers, steps by their index, and words for what
the numbers of Stash are. What Stash does not tell stays None.
"""

from collections.abc import Sequence

from pydantic import ValidationError

from stash_mcp.backends.ids import shown
from stash_mcp.models import (
    Annotation,
    Candidate,
    InstallWish,
    JobStatus,
    Quote,
    RewardModel,
    Run,
    StashRunRequest,
    Step,
    Trace,
    TraceSummary,
    TrainMetrics,
)
from stash_mcp.redaction import redact
from stash_mcp.stash.answers import shown as in_one_line
from stash_mcp.stash.shapes import (
    AnnotationShape,
    JobShape,
    RewardModelShape,
    RunShape,
    TraceShape,
    TraceSummaryShape,
)


def summary(shape: TraceSummaryShape) -> TraceSummary:
    return TraceSummary(
        id=shown(shape.id),
        external_id=shape.external_id,
        title=shape.title,
        steps=shape.step_count,
        positive=shape.positive_count,
        negative=shape.negative_count,
        comments=shape.comment_count,
    )


def trace(shape: TraceShape) -> Trace:
    return Trace(
        id=shown(shape.id),
        title=shape.title,
        metadata=shape.metadata or {},
        steps=steps(shape),
    )


def steps(shape: TraceShape) -> tuple[Step, ...]:
    """In their order."""
    return tuple(
        Step(
            role=step.role,
            content=step.content,
            tool_name=step.tool_name,
            tool_input=step.tool_input,
            tool_call_id=step.tool_call_id,
            metadata=step.metadata or {},
        )
        for step in sorted(shape.steps, key=lambda step: step.index)
    )


def step_ids(shape: TraceShape) -> list[str]:
    """Stash's ids of the steps, in their order."""
    return [step.id for step in sorted(shape.steps, key=lambda step: step.index)]


def annotations(shape: TraceShape) -> tuple[Annotation, ...]:
    places = {id: place for place, id in enumerate(step_ids(shape))}
    return tuple(
        annotation(row, None if row.step_id is None else places[row.step_id])
        for row in shape.annotations
        # One on a step that was replaced is about nothing that is there.
        if row.step_id is None or row.step_id in places
    )


def annotation(shape: AnnotationShape, step_index: int | None) -> Annotation:
    quote = shape.quote
    return Annotation(
        id=shown(shape.id),
        trace_id=shown(shape.trace_id),
        step_index=step_index,
        rating=shape.rating,
        comment=shape.comment,
        quote=None if quote is None else Quote(**quote.model_dump()),
        label_error=shape.label_error,
        label_error_note=shape.label_error_note,
        author=shape.author_name,
        created_at=shape.created_at,
    )


def reward_model(shape: RewardModelShape) -> RewardModel:
    return RewardModel(
        id=shown(shape.id),
        backend="stash",
        name=shape.name,
        base_model=shape.base_model,
        status=JobStatus(shape.status),
        epochs=shape.epochs,
        max_pairs=shape.max_pairs,
        trace_count=shape.trace_count,
        num_pairs=shape.num_pairs,
        metrics=_metrics(shape),
        reason=_reason(shape),
        error=_error(shape),
        imported_from=None,
        created_at=shape.created_at,
        started_at=shape.started_at,
        finished_at=shape.finished_at,
        progress=None,
    )


def candidates(shape: RunShape) -> list[Candidate]:
    """Numbered by their place; the seed is 0. They come only at the end."""
    if shape.candidates is not None:
        pairs = [(row.skill, row.score) for row in shape.candidates]
    else:
        ends = ((shape.seed_skill, shape.seed_score), (shape.best_skill, shape.best_score))
        pairs = [(skill, score) for skill, score in ends if skill is not None and score is not None]
    return [
        Candidate(number=number, skill=skill, score=score)
        for number, (skill, score) in enumerate(pairs)
    ]


def run(shape: RunShape) -> Run:
    """Without what this library knows of its installation."""
    best = _best(shape)
    return Run(
        id=shown(shape.id),
        backend="stash",
        status=JobStatus(shape.status),
        request=StashRunRequest(
            reward_model_id=shown(shape.reward_model_id),
            task_model=shape.task_model,
            task_api_base=shape.task_api_base,
            reflection_model=shape.reflection_model,
            max_metric_calls=shape.max_metric_calls,
        ),
        plan=None,
        progress=None,
        skill_name=shape.skill_name,
        skill_description=shape.skill_description,
        seed_score=shape.seed_score,
        best_score=shape.best_score,
        best_candidate=None if best is None else best.number,
        heldout=None,
        verdict=_verdict(shape, best),
        stop_reason=None,
        partial=False,
        heartbeat_at=None,
        install=InstallWish(mode="off"),
        install_state="off",
        install_note=None,
        reason=_reason(shape),
        error=_error(shape),
        created_at=shape.created_at,
        started_at=shape.started_at,
        finished_at=shape.finished_at,
    )


def _best(shape: RunShape) -> Candidate | None:
    """The candidate that Stash calls the best, by its text; the earliest of equal ones."""
    if shape.status != "succeeded":
        return None
    same: Sequence[Candidate] = [row for row in candidates(shape) if row.skill == shape.best_skill]
    return same[0] if same else None


def _verdict(shape: RunShape, best: Candidate | None) -> str | None:
    if shape.status != "succeeded":
        return None
    seed, score = shape.seed_score, shape.best_score
    if seed is None or score is None:
        return "Unproven: Stash gave no scores of its seed and its best."
    if score <= seed or best is None or best.number == 0:
        return f"No improvement: no proposal of Stash's run beat the seed ({seed:.3f})."
    return (
        "Unproven: in-sample alone. On the conversations that it was optimised on the score rose "
        f"from {seed:.3f} to {score:.3f}; Stash holds none out, and a best of several always looks "
        "better on its own examples. Read the skill before you trust the number, or have it "
        "measured here (sync_with_stash with action rescore, `stash-skills rescore`)."
    )


def _metrics(shape: RewardModelShape) -> TrainMetrics | None:
    try:
        return None if shape.metrics is None else TrainMetrics.model_validate(shape.metrics)
    except ValidationError:
        # Another release of Stash measures something else.
        return None


def _reason(shape: JobShape) -> str | None:
    if shape.status != "failed":
        return None
    return in_one_line(shape.error, ()) if shape.error else "Stash gives no reason."


def _error(shape: JobShape) -> str | None:
    return None if shape.error is None else redact(shape.error)
