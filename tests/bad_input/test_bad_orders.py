"""Trainings and runs that cannot come to anything, refused at both doors before they are queued."""

from collections.abc import Callable

import pytest
from support.doors import (
    MODEL,
    Case,
    Doors,
    at_commands,
    at_tools,
    furnish,
    refused_by_command,
    refused_by_tool,
)
from support.staging import START, Stage, conversation, jsonl

TASK = ("--task-model", "openai/small")
Library = Callable[[Stage], None]


def rated(*ratings: int) -> Library:
    """One conversation for each rating."""

    def library(stage: Stage) -> None:
        rows = [conversation(f"c-{number}") for number in range(len(ratings))]
        notes = [
            {"trace_id": row["id"], "rating": rating, "created_at": START.isoformat()}
            for row, rating in zip(rows, ratings, strict=True)
        ]
        stage.backend.import_traces(jsonl(rows), annotations=jsonl(notes))

    return library


def training(id: str, library: Library, *says: str) -> Case:
    return Case(id, says, tool="train_reward_model", command=("train",), library=library)


def run(
    id: str,
    arguments: dict[str, object],
    options: tuple[str, ...],
    *says: str,
    library: Library = furnish,
) -> Case:
    return Case(
        id,
        says,
        tool="start_gepa_run",
        arguments={"reward_model_id": MODEL, "task_model": "openai/small", **arguments},
        command=("run", *TASK, "--reward-model", MODEL, *options),
        library=library,
    )


def begun_by_the_assistant(stage: Stage) -> None:
    furnish(stage)
    steps = [
        {"role": "system", "content": "You help."},
        {"role": "assistant", "content": "Hello!"},
        {"role": "user", "content": "Where is my parcel?"},
    ]
    stage.backend.import_traces(jsonl([{"id": f"s-{n}", "steps": steps} for n in range(2)]))


def untrained(stage: Stage) -> None:
    stage.conversations()
    stage.train()


def failed(stage: Stage) -> None:
    untrained(stage)
    stage.begin()
    stage.store.fail(MODEL, "Memory ran out.", "the log")


CASES = [
    training(
        "only positive ratings",
        rated(1, 1, 1),
        "The ratings give 0 preference pairs",
        "Whole conversations: 3 positive, 0 negative",
        "All ratings are positive: rate some with -1 too",
    ),
    training(
        "exactly one pair",
        rated(1, -1),
        "The ratings give 1 preference pair; a training needs at least 2",
        "Rate at least one more",
    ),
    training(
        "an empty library",
        lambda stage: None,
        "The ratings give 0 preference pairs",
        "Nothing is rated yet: rate at least three, both ways",
    ),
    run(
        "no input before the first assistant step",
        {"trace_ids": ["s-*"]},
        ("--trace", "s-*"),
        "None of the 2 conversations can be replayed: starts with the assistant (2)",
        "Choose conversations in which the user speaks before the assistant does",
        library=begun_by_the_assistant,
    ),
    run(
        "a budget that is too small",
        {"max_metric_calls": 5},
        ("--max-metric-calls", "5"),
        "A budget of 5 metric calls cannot reach two proposals on 12 conversations",
        "Give max_metric_calls=48 or more",
    ),
    run(
        "a skill's name that is none",
        {"skill_name": "My Skill!"},
        ("--skill-name", "My Skill!"),
        "The skill cannot be called so: The name has ' ', '!', 'M', 'S' in it",
        "only a-z, 0-9 and '-' are allowed",
        "Correct skill_name and skill_description, or leave them out",
    ),
    run(
        "a reward model still in the queue",
        {},
        (),
        f"The reward model '{MODEL}' is queued, not trained",
        "Wait for it to succeed",
        library=untrained,
    ),
    run(
        "a reward model that failed",
        {},
        (),
        f"The reward model '{MODEL}' is failed, not trained",
        "It ended with: Memory ran out. Train another one",
        library=failed,
    ),
]


@pytest.mark.anyio
@at_tools(CASES)
async def test_the_tool_says_what_is_missing_and_queues_nothing(case: Case, doors: Doors) -> None:
    await refused_by_tool(case, doors)


@at_commands(CASES)
def test_the_command_says_what_is_missing_and_queues_nothing(case: Case, doors: Doors) -> None:
    refused_by_command(case, doors)
