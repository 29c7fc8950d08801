"""A library as it is after weeks of use: reviewed conversations, and runs that are over."""

import json
import random
from collections.abc import Iterator
from datetime import UTC, datetime

from benchmarks.sample_texts import conversation
from stash_mcp.backends.base import Backend
from stash_mcp.models import Candidate, JobKind, Plan, RunRequest, Skill
from stash_mcp.runs.store import JobStore
from stash_mcp.settings import Settings
from stash_mcp.skills.document import render
from stash_mcp.storage.database import Database

CANDIDATES = 12
_STEPS = 8
_WORDS_A_STEP = 60
_WORDS_A_SKILL = 700
_EXAMPLES = 24
_PLAN = Plan(
    examples=_EXAMPLES,
    heldout_examples=0,
    skipped=(),
    commented_examples=_EXAMPLES,
    max_metric_calls=162,
    proposals_at_best=20,
    proposals_at_worst=6,
    task_calls_at_most=162,
    reflection_calls_at_most=40,
    prompt_tokens_estimate=100_000,
)


def fill(backend: Backend, settings: Settings, traces: int, runs: int) -> None:
    """Traces `trace-0` and so on, every one rated and commented; runs `run-0` and so on."""
    choose = random.Random(0)
    backend.import_traces(
        _jsonl(_trace(number, choose) for number in range(traces)),
        annotations=_jsonl(_annotation(number) for number in range(traces)),
    )
    jobs = JobStore(Database(settings.library_path), lambda: datetime.now(UTC))
    for number in range(runs):
        _add_run(jobs, f"run-{number}", choose)


def _trace(number: int, choose: random.Random) -> dict[str, object]:
    steps = [
        {
            "role": ("user", "assistant")[step % 2],
            "content": f"{number}: {conversation(_WORDS_A_STEP, choose)}",
        }
        for step in range(_STEPS)
    ]
    return {"id": f"trace-{number}", "title": f"Conversation {number}", "steps": steps}


def _annotation(number: int) -> dict[str, object]:
    return {
        "trace_id": f"trace-{number}",
        "step_index": 1,
        "rating": -1 if number % 2 else 1,
        "comment": f"Ask for the order number first, case {number}.",
        "created_at": "2026-01-01T00:00:00+00:00",
    }


def _add_run(jobs: JobStore, run_id: str, choose: random.Random) -> None:
    candidates = [_candidate(number, choose) for number in range(CANDIDATES)]
    best = max(candidates, key=lambda candidate: candidate.score)
    request = RunRequest(
        reward_model_id="rm-0",
        task_model="openai/task",
        reflection_model="builtin/comments",
        max_metric_calls=_PLAN.max_metric_calls,
    )
    result = {
        "skill_name": "parcels",
        "skill_description": "How to answer about parcels.",
        "best_skill": best.skill,
        "best_score": best.score,
        "seed_skill": candidates[0].skill,
        "seed_score": candidates[0].score,
        "candidates": [{"skill": row.skill, "score": row.score} for row in candidates],
        "best_candidate": best.number,
        "verdict": "The gain is unproven.",
    }
    jobs.create(run_id, JobKind.GEPA, "parcels", request, plan=_PLAN, result=json.dumps(result))
    for candidate in candidates:
        jobs.put_candidate(run_id, candidate)


def _candidate(number: int, choose: random.Random) -> Candidate:
    body = conversation(_WORDS_A_SKILL, choose)
    description = "How to answer about parcels."
    return Candidate(
        number=number,
        skill=render(Skill(name="parcels", description=description, body=body)),
        score=round(0.4 + number / 100, 3),
        parents=(number - 1,) if number else (),
        scores={f"trace-{example}": 0.5 for example in range(_EXAMPLES)},
    )


def _jsonl(rows: Iterator[dict[str, object]]) -> bytes:
    return "".join(f"{json.dumps(row)}\n" for row in rows).encode()
