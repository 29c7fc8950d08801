"""What is around cannot be used, at both doors: a part of the installation is missing, the skills
folder is read-only. It works again afterwards.
"""

import errno
import importlib.util
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.machinery import ModuleSpec
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
    refused_by_command,
    refused_by_tool,
)

Break = Callable[[pytest.MonkeyPatch], None]
TASK = ("--task-model", "openai/small")
RUN_ARGUMENTS = {"reward_model_id": MODEL, "task_model": "openai/small"}


# --- a missing part of the installation ---


def without(library: str) -> Break:
    def breaks(monkeypatch: pytest.MonkeyPatch) -> None:
        real = importlib.util.find_spec

        def find_spec(name: str, package: str | None = None) -> ModuleSpec | None:
            return None if name == library else real(name, package)

        monkeypatch.setattr(importlib.util, "find_spec", find_spec)

    return breaks


NEEDS_LOCAL = "needs the optional part 'local', which is not installed"
INSTALL_LOCAL = "'stash-skills[local]'"
MISSING = [
    Case(
        "a training",
        (f"Training a reward model on this machine {NEEDS_LOCAL}", INSTALL_LOCAL),
        tool="train_reward_model",
        command=("train",),
    ),
    Case(
        "a run",
        (f"A run on this machine {NEEDS_LOCAL}", INSTALL_LOCAL),
        tool="start_gepa_run",
        arguments=RUN_ARGUMENTS,
        command=("run", *TASK),
    ),
]


@pytest.mark.anyio
@pytest.mark.parametrize("library", ["torch", "gepa", "litellm"])
@at_tools(MISSING)
async def test_the_tool_names_the_part_that_is_missing_and_how_to_get_it(
    case: Case, library: str, doors: Doors, monkeypatch: pytest.MonkeyPatch
) -> None:
    await refused_by_tool(case, doors, lambda: without(library)(monkeypatch))
    is_error, text = await doors.call("list_reward_models")
    assert not is_error, text


@at_commands(MISSING)
def test_the_command_names_the_part_that_is_missing_and_how_to_get_it(
    case: Case, doors: Doors, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused_by_command(case, doors, lambda: without("transformers")(monkeypatch))
    assert doors.command("models").code == 0


# --- a read-only skills folder ---


@contextmanager
def read_only(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """By its mode; for a user whom modes do not bind, by refusing as a read-only disk does."""
    if sys.platform != "win32" and os.geteuid() != 0:
        folder.chmod(0o555)
        yield
        folder.chmod(0o755)
        return
    real = os.replace

    def replace(source: Any, target: Any) -> None:
        if Path(target).is_relative_to(folder):
            raise OSError(errno.EROFS, os.strerror(errno.EROFS))
        real(source, target)

    monkeypatch.setattr(os, "replace", replace)
    yield


INSTALL = Case(
    "an installation",
    ("Could not install", "SKILL.md", "Check the permissions of that folder and do it again"),
    tool="install_skill",
    arguments={"run_id": RUN},
    command=("install", RUN),
)


@pytest.fixture
def skills_dir(doors: Doors) -> Path:
    folder = doors.stage.settings.project_dir / ".claude" / "skills"
    folder.mkdir(parents=True)
    return folder


@pytest.mark.anyio
async def test_the_tool_names_a_read_only_skills_folder_and_leaves_it_as_it_was(
    doors: Doors, skills_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with read_only(skills_dir, monkeypatch):
        await refused_by_tool(INSTALL, doors)
    monkeypatch.undo()
    is_error, text = await doors.call("install_skill", run_id=RUN)
    assert not is_error, text
    assert (skills_dir / "polite-support" / "SKILL.md").is_file()


def test_the_command_names_a_read_only_skills_folder_and_leaves_it_as_it_was(
    doors: Doors, skills_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with read_only(skills_dir, monkeypatch):
        refused_by_command(INSTALL, doors)
