"""How the stand-in's trainings and runs go on: queued, running, and then their end."""

from collections.abc import Iterable
from typing import Any

from stand_in_stash.views import annotations_of
from stand_in_stash.world import StoredJob, StoredTrace, World
from stash_mcp.datasets.examples import build_examples
from stash_mcp.datasets.pairs import build_pairs
from stash_mcp.errors import ExamplesError, PairsError
from stash_mcp.models import Annotation, Quote, Skill
from stash_mcp.skills.document import render

SEED_SCORE, BEST_SCORE = 0.52, 0.61


def looked_at(world: World, jobs: Iterable[StoredJob]) -> None:
    """Each look counts; every `world.polls` of them a job goes on by one state."""
    for job in jobs:
        job.polls += 1
        if world.polls and job.polls % world.polls == 0:
            advance(world, job)


def advance(world: World, job: StoredJob) -> None:
    if job.status == "queued":
        job.status, job.started_at = "running", world.clock()
    elif job.status == "running":
        _finish(world, job)


def _finish(world: World, job: StoredJob) -> None:
    job.finished_at = world.clock()
    job.error = job.fate
    if job.error is None:
        try:
            job.results = _trained(world, job) if job.id in world.models else _evolved(world, job)
        except (PairsError, ExamplesError) as error:
            job.error = str(error)
    job.status = "succeeded" if job.error is None else "failed"


def _trained(world: World, job: StoredJob) -> dict[str, Any]:
    traces = _traces(world, job.given["trace_ids"])
    annotations = annotations_on(world, traces)
    pairs = build_pairs([t.as_model() for t in traces], annotations, job.given["max_pairs"])
    metrics = {
        "train_pairs": len(pairs),
        "eval_pairs": 0,
        "eval_accuracy": None,
        "eval_split": "trace",
        "excluded_cross_trace_pairs": 0,
        "final_loss": 0.41,
        "epochs": job.given["epochs"],
        "device": "cuda",
        "seconds": 12.5,
    }
    return {"num_pairs": len(pairs), "metrics": metrics}


def _evolved(world: World, job: StoredJob) -> dict[str, Any]:
    model = world.models[job.given["reward_model_id"]]
    traces = _traces(world, model.given["trace_ids"])
    built = build_examples([t.as_model() for t in traces], annotations_on(world, traces))
    comments = [comment for example in built.examples for comment in example.feedback]
    name, description = "reviewers-advice", "What reviewers asked for. Use in every conversation."
    seed = render(Skill(name=name, description=description, body=description))
    body = "\n".join(["# What reviewers asked for", *(f"- {words}" for words in comments)])
    best = render(Skill(name=name, description=description, body=body))
    return {
        "skill_name": name,
        "skill_description": description,
        "seed_skill": seed,
        "seed_score": SEED_SCORE,
        "best_skill": best,
        "best_score": BEST_SCORE,
        "candidates": [
            {"skill": seed, "score": SEED_SCORE},
            {"skill": best, "score": BEST_SCORE},
        ],
    }


def _traces(world: World, ids: Iterable[str]) -> list[StoredTrace]:
    return [world.traces[id] for id in ids if id in world.traces]


def annotations_on(world: World, traces: Iterable[StoredTrace]) -> list[Annotation]:
    return [
        Annotation(
            id=known.id,
            trace_id=trace.id,
            step_index=None if known.step_id is None else trace.step_ids.index(known.step_id),
            rating=known.rating,
            comment=known.comment,
            quote=None if known.quote is None else Quote(**known.quote),
            label_error=known.label_error,
            created_at=known.created_at,
        )
        for trace in traces
        for known in annotations_of(world, trace)
    ]
