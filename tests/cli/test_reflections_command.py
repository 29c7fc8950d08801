"""`reflection` and `submit`: a person, or an agent without MCP, writes the skill."""

import io
import json
import sys
from collections.abc import Callable
from typing import Any

import pytest
from support.staging import Stage

from stash_mcp.backends.base import RunOrder
from stash_mcp.runs.reflections import Question, ReflectionStore
from stash_mcp.storage.database import Database

Command = Callable[..., Any]
RUN = "run-2"


@pytest.fixture
def store(stage: Stage) -> ReflectionStore:
    """Of a run under way that asks the agent."""
    stage.conversations()
    order = RunOrder(
        reward_model_id=stage.trained().id, task_model="openai/small", reflection_model="agent"
    )
    assert stage.backend.start_run(order).run.id == RUN
    stage.begin()
    return ReflectionStore(Database(stage.settings.library_path), stage.clock)


def test_what_waits_is_printed_as_it_is(command: Command, store: ReflectionStore) -> None:
    assert "waits for no reflection now; it is running" in command("reflection", RUN).err
    store.ask(RUN, Question("body", "Write a.\n[not markup]"))
    store.ask(RUN, Question("identity", "Name it."))
    said = command("reflection", RUN)
    assert (said.code, said.out) == (0, "Write a.\n[not markup]\n")
    assert "Reflection 1; waiting: 1, 2" in said.err
    assert f"stash-skills submit {RUN} 1 FILE" in said.err
    second = command("reflection", RUN, "2")
    assert second.out == "Name it.\n"
    assert f"submit {RUN} 2 --name NAME --description TEXT" in second.err
    listed = json.loads(command("reflection", RUN, "--json").out)
    assert listed["waiting"] == [1, 2]
    assert listed["reflection"]["prompt"] == "Write a.\n[not markup]"


def test_a_body_is_handed_in_from_a_file_once_it_keeps_the_rules(
    command: Command, store: ReflectionStore, stage: Stage
) -> None:
    store.ask(RUN, Question("body", "Write a."))
    file = stage.settings.project_dir / "body.md"
    file.write_text("Run !`ls` first.", encoding="utf-8")
    refused = command("submit", RUN, "1", "body.md")
    assert refused.code == 1
    assert "Line 1" in refused.err
    assert "It still waits" in refused.err
    file.write_bytes("\ufeffAsk first \u2013 always.\r\n".encode())
    accepted = command("submit", RUN, "1", "body.md")
    assert (accepted.code, accepted.out) == (0, f"Reflection 1 of {RUN} is accepted.\n")
    assert f"stash-skills status --follow {RUN}" in accepted.err
    assert store.get(RUN, 1).answer == "Ask first \u2013 always."


def test_a_body_comes_from_standard_input_too(
    command: Command, store: ReflectionStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.ask(RUN, Question("body", "Write a."))
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"Ask first.")))
    said = command("submit", RUN, "1", "-", "--json")
    assert json.loads(said.out)["reflections_waiting"] == []
    assert store.get(RUN, 1).answer == "Ask first."


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("1",), "The body is empty."),
        (("1", "nothing.md"), "nothing.md"),
        (("1", "latin.md"), "not UTF-8"),
        (("9", "latin.md", "--name", "x"), "not UTF-8"),
        (("9",), "has no reflection 9"),
    ],
)
def test_what_cannot_be_handed_in_is_refused_in_words(
    command: Command,
    store: ReflectionStore,
    stage: Stage,
    arguments: tuple[str, ...],
    says: str,
) -> None:
    store.ask(RUN, Question("body", "Write a."))
    (stage.settings.project_dir / "latin.md").write_bytes(b"caf\xe9")
    said = command("submit", RUN, *arguments)
    assert (said.code, said.out) == (1, "")
    assert says in said.err
    assert store.pending(RUN) == (1,)


def test_a_name_is_handed_in_by_options(command: Command, store: ReflectionStore) -> None:
    store.ask(RUN, Question("identity", "Name it."))
    said = command("submit", RUN, "1", "--name", "parcels", "--description", "About parcels.")
    assert said.code == 0
    answer = store.get(RUN, 1).answer or ""
    assert json.loads(answer) == {"name": "parcels", "description": "About parcels."}


def test_the_status_says_what_waits(command: Command, store: ReflectionStore) -> None:
    store.ask(RUN, Question("body", "Write a."))
    said = command("status", RUN)
    assert f"Next: stash-skills reflection {RUN}, then stash-skills submit {RUN} NUMBER" in said.err
    assert "sign of life" not in said.out
    assert "running, waits for 1 reflection" in command("runs").out
