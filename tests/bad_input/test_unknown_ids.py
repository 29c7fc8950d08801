"""Ids of nothing: traces, annotations, reward models, runs, candidates, at both doors."""

import pytest
from support.doors import (
    MODEL,
    RUN,
    Case,
    Doors,
    at_commands,
    at_tools,
    refused_by_command,
    refused_by_tool,
)

NO_TRACE = ("There is no trace 'nobody'", "List the traces to see their ids")
NO_RUN = ("There is no run 'run-9'", "List the runs to see their ids")
NO_MODEL = ("There is no reward model 'rm-9'", "List the reward models to see their ids")
NO_CANDIDATE = f"The run '{RUN}' has no candidate 7"
TASK = ("--task-model", "openai/small")
TASK_MODEL = {"task_model": "openai/small"}

CASES = [
    Case(
        "a trace to read",
        NO_TRACE,
        tool="get_trace",
        arguments={"trace_id": "nobody"},
        command=("trace", "nobody"),
    ),
    Case(
        "a trace to annotate",
        NO_TRACE,
        tool="annotate_trace",
        arguments={"trace_id": "nobody", "rating": "up"},
        command=("annotate", "nobody", "--rating", "up"),
    ),
    Case(
        "an annotation to flag",
        ("There is no annotation 'a-9'", "are shown with the trace"),
        tool="flag_annotation",
        arguments={"annotation_id": "a-9"},
        command=("flag", "a-9"),
    ),
    Case(
        "a trace to train on",
        NO_TRACE,
        tool="train_reward_model",
        arguments={"trace_ids": ["c-*", "nobody"]},
        command=("train", "--trace", "c-*", "--trace", "nobody"),
    ),
    Case(
        "a pattern of traces for a run",
        ("There is no trace 'x-*'", "List the traces"),
        tool="start_gepa_run",
        arguments={"reward_model_id": MODEL, **TASK_MODEL, "trace_ids": ["x-*"]},
        command=("run", *TASK, "--trace", "x-*"),
    ),
    Case(
        "a reward model for a run",
        NO_MODEL,
        tool="start_gepa_run",
        arguments={"reward_model_id": "rm-9", **TASK_MODEL},
        command=("run", *TASK, "--reward-model", "rm-9"),
    ),
    Case(
        "a run in a reward model's place",
        (f"There is no reward model '{RUN}'", "List the reward models"),
        tool="start_gepa_run",
        arguments={"reward_model_id": RUN, **TASK_MODEL},
        command=("run", *TASK, "--reward-model", RUN),
    ),
    Case("a reward model to export", NO_MODEL, command=("export-model", "rm-9", "model.tar.gz")),
    Case(
        "a job to look at",
        ("There is no run and no reward model 'run-9'", "show the ids"),
        tool="get_run",
        arguments={"run_id": "run-9"},
        command=("status", "run-9"),
    ),
    Case(
        "a run to read candidates of",
        NO_RUN,
        tool="list_candidates",
        arguments={"run_id": "run-9"},
        command=("candidates", "run-9"),
    ),
    Case(
        "a reward model in a run's place",
        (f"There is no run '{MODEL}'", "List the runs"),
        tool="list_candidates",
        arguments={"run_id": MODEL},
        command=("candidates", MODEL),
    ),
    Case(
        "a candidate to read",
        (NO_CANDIDATE, "It has 0 to 1"),
        tool="list_candidates",
        arguments={"run_id": RUN, "candidate": 7},
        command=("candidates", RUN, "--show", "7"),
    ),
    Case(
        "a run to install from",
        NO_RUN,
        tool="install_skill",
        arguments={"run_id": "run-9"},
        command=("install", "run-9"),
    ),
    Case(
        "a candidate to install",
        (NO_CANDIDATE, "List its candidates to see their numbers"),
        tool="install_skill",
        arguments={"run_id": RUN, "candidate": 7},
        command=("install", RUN, "--candidate", "7"),
    ),
]


@pytest.mark.anyio
@at_tools(CASES)
async def test_the_tool_names_the_id_and_the_list_of_those_there_are(
    case: Case, doors: Doors
) -> None:
    await refused_by_tool(case, doors)


@at_commands(CASES)
def test_the_command_names_the_id_and_the_list_of_those_there_are(case: Case, doors: Doors) -> None:
    refused_by_command(case, doors)
