"""What the API shows of what it knows."""

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from stand_in_stash.world import StoredAnnotation, StoredJob, StoredTrace, World

Json = dict[str, Any]


def _time(moment: datetime | None) -> str | None:
    return None if moment is None else moment.isoformat()


def annotations_of(world: World, trace: StoredTrace) -> list[StoredAnnotation]:
    return [known for known in world.annotations.values() if known.trace_id == trace.id]


def summary(trace: StoredTrace, annotations: Iterable[StoredAnnotation]) -> Json:
    counted = list(annotations)
    sound = [known for known in counted if not known.label_error]
    return {
        "id": trace.id,
        "external_id": trace.external_id,
        "title": trace.title,
        "source_format": trace.source_format,
        "step_count": len(trace.steps),
        "positive_count": sum(known.rating == 1 for known in sound),
        "negative_count": sum(known.rating == -1 for known in sound),
        "comment_count": sum(known.comment is not None for known in counted),
        "label_error_count": len(counted) - len(sound),
        "latest_score": None,
        "created_at": _time(trace.created_at),
    }


def detail(world: World, trace: StoredTrace) -> Json:
    annotations = annotations_of(world, trace)
    steps = zip(trace.step_ids, trace.steps, strict=True)
    return {
        **summary(trace, annotations),
        "metadata": trace.metadata,
        "steps": [
            {
                "id": id,
                "index": index,
                "role": step.role,
                "content": step.content,
                "tool_name": step.tool_name,
                "tool_input": step.tool_input,
                "tool_call_id": step.tool_call_id,
                "metadata": step.metadata or None,
            }
            for index, (id, step) in enumerate(steps)
        ],
        "annotations": [annotation(known) for known in annotations],
        "scores": [],
    }


def annotation(known: StoredAnnotation) -> Json:
    return {
        "id": known.id,
        "trace_id": known.trace_id,
        "step_id": known.step_id,
        "rating": known.rating,
        "comment": known.comment,
        "quote": known.quote,
        "label_error": known.label_error,
        "label_error_note": known.label_error_note,
        "author_id": known.owner.name,
        "author_name": known.owner.name,
        "created_at": _time(known.created_at),
    }


def exported_trace(trace: StoredTrace) -> Json:
    optional = ("tool_name", "tool_input", "tool_call_id", "metadata")
    steps = [
        {"role": step.role, "content": step.content}
        | {name: getattr(step, name) for name in optional if getattr(step, name)}
        for step in trace.steps
    ]
    line: Json = {"title": trace.title, "metadata": trace.metadata, "steps": steps}
    return line if trace.external_id is None else {"id": trace.external_id, **line}


def exported_annotation(world: World, known: StoredAnnotation) -> Json:
    trace = world.traces[known.trace_id]
    index = None if known.step_id is None else trace.step_ids.index(known.step_id)
    kept = ("rating", "comment", "quote", "label_error", "label_error_note")
    return {
        "trace_id": known.trace_id,
        "trace_external_id": trace.external_id,
        "step_index": index,
        **{name: getattr(known, name) for name in kept},
        "author": known.owner.name,
        "created_at": _time(known.created_at),
    }


def _job(job: StoredJob) -> Json:
    return {
        "id": job.id,
        "status": job.status,
        "error": job.error,
        "created_at": _time(job.created_at),
        "started_at": _time(job.started_at),
        "finished_at": _time(job.finished_at),
    }


def model(job: StoredJob) -> Json:
    kept = ("name", "base_model", "epochs", "max_pairs")
    return {
        **_job(job),
        **{name: job.given[name] for name in kept},
        "compute": "modal",
        "trace_count": len(job.given["trace_ids"]),
        "num_pairs": job.results.get("num_pairs"),
        "metrics": job.results.get("metrics"),
    }


def model_detail(job: StoredJob) -> Json:
    more = {"trace_ids": job.given["trace_ids"], "feedback": None, "progress": None}
    return {**model(job), **more, "training_config": job.given.get("training_config")}


def run(job: StoredJob) -> Json:
    results = (
        "skill_name",
        "skill_description",
        "seed_skill",
        "seed_score",
        "best_skill",
        "best_score",
        "candidates",
    )
    given = {name: value for name, value in job.given.items() if name not in results}
    return {**_job(job), **given, **{name: job.results.get(name) for name in results}}
