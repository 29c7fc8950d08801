"""What Stash tells, as the conversations, reward models and runs that people see.

Covered: ids with their prefix, candidates with numbers, steps by their index, and words for what
the numbers of Stash are. What Stash does not tell stays None.
"""

from collections.abc import Sequence
from typing import NamedTuple

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
from stash_mcp.stash.shapes import (
    AnnotationShape,
    JobShape,
    RewardModelShape,
    RunShape,
    TraceShape,
    TraceSummaryShape,
)
from stash_mcp.stash.wording import shown as in_one_line


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
    """Numbered by their place; the seed is 0. They come only at the end.

    Where Stash's list has another one at its head than what it calls the seed, the seed is put
    before it, and where it lacks what it calls the best, that is added at its end. One without a
    text or a score is left out, and those after it keep their numbers. The scores of the seed and
    of the best stand beside the list too, and are taken from there.
    """
    ends = ((shape.best_skill, shape.best_score), (shape.seed_skill, shape.seed_score))
    told = {skill: score for skill, score in ends if score is not None}
    return [
        Candidate(number=number, skill=skill, score=score)
        for number, (skill, given) in enumerate(_listed(shape))
        if skill is not None and (score := told.get(skill) if given is None else given) is not None
    ]


def _listed(shape: RunShape) -> list[tuple[str | None, float | None]]:
    """Texts and scores by number, with None for what is not known."""
    rows = [(row.skill, row.score) for row in shape.candidates or ()]
    head = rows[0][0] if rows else None
    if not rows or (shape.seed_skill is not None and head != shape.seed_skill):
        same = [row for row in rows if row[0] == shape.seed_skill]
        seed = same[0] if same else (shape.seed_skill, shape.seed_score)
        others = [row for row in rows if row is not seed]
        # One at the head that cannot be read is the seed, by the contract.
        rows = [seed, *(others[1:] if head is None and not same else others)]
    if shape.best_skill is not None and shape.best_skill not in [text for text, _ in rows]:
        rows.append((shape.best_skill, shape.best_score))
    return rows


def run(shape: RunShape) -> Run:
    """Without what this library knows of its installation."""
    listed = candidates(shape)
    best, scores = _best(shape, listed), _scores(shape, listed)
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
        seed_score=scores.seed,
        best_score=scores.best,
        best_candidate=None if best is None else best.number,
        heldout=None,
        verdict=_verdict(shape, best, scores),
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


class _Scores(NamedTuple):
    seed: float | None
    best: float | None


def _scores(shape: RunShape, listed: Sequence[Candidate]) -> _Scores:
    """Those that Stash gives the run itself; for one that it leaves out, the candidate's."""
    by_text = {row.skill: row.score for row in reversed(listed)}
    seed = by_text.get(shape.seed_skill or "")
    best = by_text.get(shape.best_skill or "")
    return _Scores(
        seed if shape.seed_score is None else shape.seed_score,
        best if shape.best_score is None else shape.best_score,
    )


def _best(shape: RunShape, listed: Sequence[Candidate]) -> Candidate | None:
    """The candidate that Stash calls the best, by its text; the earliest of equal ones."""
    if shape.status != "succeeded":
        return None
    return next((row for row in listed if row.skill == shape.best_skill), None)


def _verdict(shape: RunShape, best: Candidate | None, scores: _Scores) -> str | None:
    if shape.status != "succeeded":
        return None
    seed, score = scores
    if seed is None or score is None:
        return "Unproven: Stash gave no scores of its seed and its best."
    if score <= seed or (shape.best_skill is not None and shape.best_skill == shape.seed_skill):
        return f"No improvement: no proposal of Stash's run beat the seed (in-sample {seed:.3f})."
    if best is None:
        return (
            f"Unproven: Stash says that the score rose from {seed:.3f} to {score:.3f} (in-sample), "
            "and does not give the skill that it calls the best."
        )
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
