"""Reward models' files that must not be loaded: damaged in their place, or given for import."""

import tarfile
from collections.abc import Callable
from pathlib import Path

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
from support.staging import Stage, write_checkpoint

from stash_mcp.runs.folder import JobFolder

Change = Callable[[Path], None]
FOLDER, ARCHIVE = "model", "model.tar.gz"


def without_stats(model: Path) -> None:
    (model / "reward_stats.json").unlink()


def with_pickle(model: Path) -> None:
    (model / "pytorch_model.bin").write_bytes(b"\x80\x04N.")


def of_input_version(version: int) -> Change:
    def change(model: Path) -> None:
        config = f'{{"stash_input_version": {version}}}'
        (model / "tokenizer_config.json").write_text(config, encoding="utf-8")

    return change


DAMAGES: list[tuple[str, Change, tuple[str, ...]]] = [
    (
        "no reward_stats.json",
        without_stats,
        ("has no reward_stats.json: it was trained before calibration", "Retrain it"),
    ),
    (
        "a pickle",
        with_pickle,
        ("holds pytorch_model.bin, which can run code when it is loaded", "Delete it"),
    ),
    (
        "an input version that nobody knows",
        of_input_version(9),
        ("reads its input in stash_input_version 9, which is unknown", "Use a newer release"),
    ),
    (
        "an input version of elsewhere",
        of_input_version(2),
        ("stash_input_version 2, which is known but not supported", "Use a newer release"),
    ),
]


def in_its_place(change: Change) -> Callable[[Stage], None]:
    """The furnished library with its reward model's files changed behind its back."""

    def library(stage: Stage) -> None:
        furnish(stage)
        change(JobFolder(stage.settings.reward_models_dir / MODEL).model_path)

    return library


def as_folder(change: Change) -> Callable[[Stage], None]:
    """An empty library, and a checkpoint in the project's folder."""

    def library(stage: Stage) -> None:
        folder = stage.settings.project_dir / FOLDER
        write_checkpoint(folder)
        change(folder)

    return library


def as_archive(change: Change) -> Callable[[Stage], None]:
    def library(stage: Stage) -> None:
        as_folder(change)(stage)
        project = stage.settings.project_dir
        with tarfile.open(project / ARCHIVE, "w:gz") as tar:
            tar.add(project / FOLDER, "reward-model")

    return library


def as_archive_that_escapes(stage: Stage) -> None:
    as_folder(lambda model: None)(stage)
    project = stage.settings.project_dir
    with tarfile.open(project / ARCHIVE, "w:gz") as tar:
        tar.add(project / FOLDER, "reward-model")
        tar.add(project / FOLDER / "config.json", "reward-model/../../evil.json")


AT_RUNS = [
    Case(
        f"{id}, at a run",
        says,
        tool="start_gepa_run",
        arguments={"reward_model_id": MODEL, "task_model": "openai/small"},
        command=("run", "--task-model", "openai/small"),
        library=in_its_place(change),
    )
    for id, change, says in DAMAGES
]
AT_IMPORTS = [
    Case(f"{id}, in a {kind}", says, command=("import-model", name), library=library(change))
    for id, change, says in DAMAGES
    for kind, name, library in (("folder", FOLDER, as_folder), ("archive", ARCHIVE, as_archive))
]
AT_EXPORTS = [
    Case(
        f"{id}, at an export",
        says,
        command=("export-model", MODEL, "out.tar.gz"),
        library=in_its_place(change),
    )
    for id, change, says in DAMAGES[:2]
]
CASES = [
    *AT_RUNS,
    *AT_IMPORTS,
    *AT_EXPORTS,
    Case(
        "a path outside its folder",
        ("writes outside its folder: 'reward-model/../../evil.json'", "Make the archive again"),
        command=("import-model", ARCHIVE),
        library=as_archive_that_escapes,
    ),
    Case(
        "no file at all",
        ("There is no archive at", "gone.tar.gz", "Check the path"),
        command=("import-model", "gone.tar.gz"),
    ),
    Case(
        "a file of something else",
        ("talks.jsonl is not a whole tar.gz file", "Make the archive again"),
        command=("import-model", "talks.jsonl"),
        files={"talks.jsonl": b"{}\n"},
    ),
]


@pytest.mark.anyio
@at_tools(CASES)
async def test_the_tool_refuses_a_damaged_reward_model_and_queues_nothing(
    case: Case, doors: Doors
) -> None:
    await refused_by_tool(case, doors)


@at_commands(CASES)
def test_the_command_refuses_a_damaged_reward_model_and_keeps_nothing_of_it(
    case: Case, doors: Doors
) -> None:
    refused_by_command(case, doors)
