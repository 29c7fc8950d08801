"""A full disk, of the library or of files, at both doors: nothing is lost, no part of a file stays,
and the library is sound and works again afterwards.
"""

import errno
import os
import shutil
import sqlite3
import tarfile
from pathlib import Path
from typing import Any

import pytest
from support.doors import (
    MODEL,
    RUN,
    Case,
    Doors,
    at_commands,
    at_tools,
    furnish,
    refused_by_command,
    refused_by_tool,
)
from support.staging import START, Stage, conversation, jsonl, write_checkpoint

TASK = ("--task-model", "openai/small")
RUN_ARGUMENTS = {"reward_model_id": MODEL, "task_model": "openai/small"}


def full_for_files(monkeypatch: pytest.MonkeyPatch) -> None:
    def fsync(_handle: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", fsync)


def full_for_copies(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is copied comes to an end after its first bytes."""

    def copyfile(source: Any, target: Any) -> None:
        Path(target).write_bytes(b"some")
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), target)

    opened = Path.open

    def open_new(path: Path, mode: str = "r", *rest: Any, **options: Any) -> Any:
        if mode == "xb":
            copyfile(None, path)
        return opened(path, mode, *rest, **options)

    monkeypatch.setattr(shutil, "copyfile", copyfile)
    monkeypatch.setattr(Path, "open", open_new)


def full_for_the_library(monkeypatch: pytest.MonkeyPatch) -> None:
    """SQLite gets no page more than it has."""
    real = sqlite3.connect

    def connect(*arguments: Any, **options: Any) -> sqlite3.Connection:
        connection = real(*arguments, **options)
        [pages] = connection.execute("PRAGMA page_count").fetchone()
        connection.execute(f"PRAGMA max_page_count = {pages}")
        return connection

    monkeypatch.setattr(sqlite3, "connect", connect)


def furnish_at_length(stage: Stage) -> None:
    """As `furnish`, with ids that no page has room left for; and files to import."""
    furnish(stage)
    rows = [conversation(f"{'x' * 400}-{number}") for number in range(12)]
    notes = [
        {"trace_id": row["id"], "rating": (-1) ** number, "created_at": START.isoformat()}
        for number, row in enumerate(rows)
    ]
    stage.backend.import_traces(jsonl(rows), annotations=jsonl(notes))
    write_checkpoint(stage.settings.project_dir / "model")


def furnish_with_room_for_a_little(stage: Stage) -> None:
    """A few pages are free: the conversations of an import fit, a long comment does not."""
    furnish(stage)
    stage.backend.import_traces(jsonl([conversation("spare", "long " * 10_000)]))
    stage.backend.import_traces(jsonl([conversation("spare", "short")]))


LONG_NOTE = {"trace_id": "a", "comment": "long " * 20_000, "created_at": START.isoformat()}

LIBRARY_FULL = ("The disk of the library", "is full; nothing was changed", "Free some space there")
DISK_FULL = ("No space left on device", "Free some space on that disk and do it again")

FULL_LIBRARY = [
    Case(
        "an import",
        LIBRARY_FULL,
        tool="import_traces",
        arguments={"path": "talks.jsonl"},
        command=("import", "talks.jsonl"),
        files={"talks.jsonl": jsonl([conversation("new", "long " * 10_000)])},
        library=furnish_at_length,
    ),
    Case(
        "an import with annotations",
        LIBRARY_FULL,
        tool="import_traces",
        arguments={"path": "talks.jsonl", "annotations_path": "notes.jsonl"},
        command=("import", "talks.jsonl", "--annotations", "notes.jsonl"),
        files={"talks.jsonl": jsonl([conversation("a")]), "notes.jsonl": jsonl([LONG_NOTE])},
        library=furnish_with_room_for_a_little,
    ),
    Case(
        "a comment",
        LIBRARY_FULL,
        tool="annotate_trace",
        arguments={"trace_id": "c-00", "comment": "long " * 2000},
        command=("annotate", "c-00", "--comment", "long " * 2000),
        library=furnish_at_length,
    ),
    Case(
        "a training",
        LIBRARY_FULL,
        tool="train_reward_model",
        command=("train",),
        library=furnish_at_length,
    ),
    Case(
        "a run",
        LIBRARY_FULL,
        tool="start_gepa_run",
        arguments={**RUN_ARGUMENTS, "task_model": f"openai/{'m' * 5000}"},
        command=("run", "--task-model", f"openai/{'m' * 5000}"),
        library=furnish_at_length,
    ),
    Case(
        "a reward model from elsewhere",
        LIBRARY_FULL,
        command=("import-model", "model", "--name", "m" * 5000),
        library=furnish_at_length,
    ),
]
FULL_DISK = [
    Case("a training", DISK_FULL, tool="train_reward_model", command=("train",)),
    Case(
        "a run",
        DISK_FULL,
        tool="start_gepa_run",
        arguments={**RUN_ARGUMENTS, "random_seed": 1},
        command=("run", *TASK, "--random-seed", "1"),
    ),
    Case(
        "an installation",
        DISK_FULL,
        tool="install_skill",
        arguments={"run_id": RUN},
        command=("install", RUN),
    ),
    Case("an export of conversations", DISK_FULL, command=("export", "traces", "out.jsonl")),
    Case("an export of a reward model", DISK_FULL, command=("export-model", MODEL, "out.tar.gz")),
]


@pytest.mark.anyio
@at_tools(FULL_LIBRARY)
async def test_the_tool_names_a_full_disk_of_the_library_and_loses_nothing(
    case: Case, doors: Doors, monkeypatch: pytest.MonkeyPatch
) -> None:
    await refused_by_tool(case, doors, lambda: full_for_the_library(monkeypatch))
    monkeypatch.undo()
    is_error, text = await doors.call(case.tool, **case.arguments)
    assert not is_error, text


@at_commands(FULL_LIBRARY)
def test_the_command_names_a_full_disk_of_the_library_and_loses_nothing(
    case: Case, doors: Doors, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused_by_command(case, doors, lambda: full_for_the_library(monkeypatch))


@pytest.mark.anyio
@at_tools(FULL_DISK)
async def test_the_tool_names_a_full_disk_and_leaves_no_part_of_a_file(
    case: Case, doors: Doors, monkeypatch: pytest.MonkeyPatch
) -> None:
    await refused_by_tool(case, doors, lambda: full_for_files(monkeypatch))
    monkeypatch.undo()
    is_error, text = await doors.call(case.tool, **case.arguments)
    assert not is_error, text


@at_commands(FULL_DISK)
def test_the_command_names_a_full_disk_and_leaves_no_part_of_a_file(
    case: Case, doors: Doors, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused_by_command(case, doors, lambda: full_for_files(monkeypatch))


def with_a_model_to_import(stage: Stage) -> None:
    project = stage.settings.project_dir
    write_checkpoint(project / "model")
    with tarfile.open(project / "model.tar.gz", "w:gz") as tar:
        tar.add(project / "model", "reward-model")


COPIES = [
    Case(
        f"a reward model's {kind}",
        DISK_FULL,
        command=("import-model", name),
        library=with_a_model_to_import,
    )
    for kind, name in (("folder", "model"), ("archive", "model.tar.gz"))
]


@at_commands(COPIES)
def test_the_command_names_a_full_disk_and_keeps_no_part_of_a_copy(
    case: Case, doors: Doors, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused_by_command(case, doors, lambda: full_for_copies(monkeypatch))
    monkeypatch.undo()
    project = doors.stage.settings.project_dir
    assert doors.command("import-model", str(project / case.command[1])).code == 0
