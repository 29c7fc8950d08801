"""Bad input at both doors: each is met with a message that names the thing and says what to do
next, and nothing is stored or changed.

What a single room refuses in detail is tested there; here each kind comes in as a person or an
agent would bring it.
"""

import importlib.util
import json
import tarfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from support.doors import Doors, content
from support.staging import START, Stage, conversation, jsonl, write_checkpoint

from stash_mcp.runs.folder import JobFolder

MODEL, RUN = "rm-1", "run-2"
"""Ids in the library of `furnish`."""


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Stage:
    stage = Stage(tmp_path)
    monkeypatch.setenv("STASH_MCP_HOME", str(stage.settings.home))
    monkeypatch.chdir(stage.settings.project_dir)
    return stage


@pytest.fixture
def doors(stage: Stage, capsys: pytest.CaptureFixture[str]) -> Doors:
    return Doors(stage, capsys)


def furnish(stage: Stage) -> None:
    """12 conversations with ratings and comments, a trained model, a run with two candidates."""
    stage.finished(("Be polite.", 0.4), ("Ask for the order number.", 0.6))


@dataclass(frozen=True)
class Case:
    """says: words of the message, of what is wrong and of what to do next. tool, arguments, and
    command: the doors that it comes to. files: in the project's folder. library: what is there.
    """

    id: str
    says: tuple[str, ...]
    tool: str = ""
    arguments: Mapping[str, Any] = field(default_factory=dict)
    command: tuple[str, ...] = ()
    files: Mapping[str, bytes] = field(default_factory=dict)
    library: Callable[[Stage], None] = furnish


def ids(cases: list[Case]) -> list[Any]:
    return [pytest.param(case, id=case.id) for case in cases]


# --- files of conversations ---

GOOD = json.dumps(conversation("good"))
SYSTEM = {"role": "system", "content": "You help."}
USER = {"role": "user", "content": "Where is my parcel?"}


def line(*steps: dict[str, Any]) -> bytes:
    return (json.dumps({"id": "bad", "steps": steps}) + "\n").encode()


def file(id: str, data: bytes, *says: str) -> Case:
    return Case(
        id,
        says,
        tool="import_traces",
        arguments={"path": "talks.jsonl"},
        command=("import", "talks.jsonl"),
        files={"talks.jsonl": data},
    )


FILES = [
    file("an empty file", b"", "The file is empty", "Export it again"),
    file("a file of blank lines", b"\n \r\n\n", "The file is empty", "Export it again"),
    file(
        "a truncated last line",
        f"{GOOD}\n{GOOD[:-20]}".encode(),
        "Line 2 is cut off",
        "Export or copy the file again",
    ),
    file(
        "a last line cut inside a character",
        b'{"id": "a", "title": "\xc3',
        "Line 1 is cut off",
        "Export or copy the file again",
    ),
    file(
        "invalid UTF-8",
        GOOD.encode() + b'\n{"id": "\xff"}\n' + GOOD.encode(),
        "Line 2 is not UTF-8: byte 9 is 0xff",
        "Save the file as UTF-8",
    ),
    file("a UTF-16 BOM", GOOD.encode("utf-16"), "UTF-16", "Save it as UTF-8"),
    file(
        "a line over the limit",
        b'{"id": "' + b"x" * (64 << 20) + b'"}',
        "Line 1 is 67,108,874 bytes long",
        "Shorten that conversation",
    ),
    file(
        "a 50 MB line that is not JSON",
        b"x" * (50 << 20),
        "Line 1 is not JSON",
        "one JSON object on one line",
    ),
    file("an array", b"[1, 2]", "Line 1", "not an object", "Nothing was stored"),
    file("a number", f"{GOOD}\n5\n".encode(), "Line 2 is the number 5", "JSON object"),
    file("a string", b'"hello"\n', "Line 1 is a string, not an object", "JSON object"),
    file(
        "an unknown role",
        line(USER, {"role": "wizard", "content": "Hm."}),
        "Line 1, `steps[1].role`: 'wizard' is not a role",
        "Use system, user, assistant or tool",
    ),
    file(
        "a tool_input that is not an object",
        line(USER, {"role": "assistant", "content": "", "tool_name": "t", "tool_input": [1]}),
        "Line 1, `steps[1].tool_input`: an array is not an object",
        "Give an object",
    ),
    file(
        "only system steps",
        f"{GOOD}\n".encode() + line(SYSTEM, SYSTEM),
        "Line 2: the conversation has only system steps",
        "Leave it out, or add",
    ),
]


# --- annotations ---


def note(**fields: Any) -> bytes:
    values = {"trace_id": "s-1", "created_at": START.isoformat(), **fields}
    return json.dumps(values).encode()


def with_system_step(stage: Stage) -> None:
    furnish(stage)
    talk = {"id": "s-1", "steps": [SYSTEM, USER, {"role": "assistant", "content": "Tell me."}]}
    stage.backend.import_traces(jsonl([talk]))


def annotation(id: str, fields: dict[str, Any], *says: str) -> Case:
    """Annotations of a file, the bad one after a good one."""
    good = note(rating=1, comment="Good.")
    return Case(
        f"{id}, in a file",
        says,
        tool="import_traces",
        arguments={"annotations_path": "notes.jsonl"},
        command=("import", "--annotations", "notes.jsonl"),
        files={"notes.jsonl": good + b"\n" + note(**fields)},
        library=with_system_step,
    )


ANNOTATIONS = [
    Case(
        "a rating on a system step",
        ("step 0 of trace 's-1' rates a system step", "Comment on it without a rating"),
        tool="annotate_trace",
        arguments={"trace_id": "s-1", "step": 0, "rating": "up"},
        command=("annotate", "s-1", "--step", "0", "--rating", "up"),
        library=with_system_step,
    ),
    Case(
        "a quote that is not in the step",
        ("step 1 of trace 's-1' quotes 'my package'", "Copy the passage from the step exactly"),
        tool="annotate_trace",
        arguments={"trace_id": "s-1", "step": 1, "comment": "Which?", "quote": "my package"},
        command=("annotate", "s-1", "--step", "1", "--comment", "Which?", "--quote", "my package"),
        library=with_system_step,
    ),
    Case(
        "a step that is not there",
        ("step 3 of trace 's-1'", "there are 3 steps", "from 0 to 2"),
        tool="annotate_trace",
        arguments={"trace_id": "s-1", "step": 3, "rating": "up"},
        command=("annotate", "s-1", "--step", "3", "--rating", "up"),
        library=with_system_step,
    ),
    annotation(
        "a rating on a system step",
        {"step_index": 0, "rating": 1},
        "step 0 of trace 's-1' rates a system step",
        "Comment on it without a rating",
    ),
    annotation(
        "a quote that is not in the step",
        {"step_index": 1, "comment": "Which?", "quote": {"text": "my package"}},
        "step 1 of trace 's-1' quotes 'my package'",
        "Copy the passage from the step exactly",
    ),
    annotation(
        "a trace that is not there",
        {"trace_id": "s-2", "rating": 1},
        "There is no trace 's-2'",
        "List the traces",
    ),
    annotation(
        "a rating that is none", {"rating": 5}, "Line 2, `rating`: 5 is not a rating", "Use 1, -1"
    ),
]


# --- ids ---

TASK = ("--task-model", "openai/small")
TASK_MODEL = {"task_model": "openai/small"}
_NO_TRACE = ("There is no trace 'nobody'", "List the traces")
_NO_RUN = ("There is no run 'run-9'", "List the runs")

IDS = [
    Case(
        "a trace to read",
        _NO_TRACE,
        tool="get_trace",
        arguments={"trace_id": "nobody"},
        command=("trace", "nobody"),
    ),
    Case(
        "a trace to annotate",
        _NO_TRACE,
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
        _NO_TRACE,
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
        ("There is no reward model 'rm-9'", "List the reward models"),
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
    Case(
        "a reward model to export",
        ("There is no reward model 'rm-9'", "List the reward models"),
        command=("export-model", "rm-9", "model.tar.gz"),
    ),
    Case(
        "a job to look at",
        ("There is no run and no reward model 'run-9'", "show the ids"),
        tool="get_run",
        arguments={"run_id": "run-9"},
        command=("status", "run-9"),
    ),
    Case(
        "a run to read candidates of",
        _NO_RUN,
        tool="list_candidates",
        arguments={"run_id": "run-9"},
        command=("candidates", "run-9"),
    ),
    Case(
        "a candidate to read",
        (f"The run '{RUN}' has no candidate 7", "It has 0 to 1"),
        tool="list_candidates",
        arguments={"run_id": RUN, "candidate": 7},
        command=("candidates", RUN, "--show", "7"),
    ),
    Case(
        "a run to install from",
        _NO_RUN,
        tool="install_skill",
        arguments={"run_id": "run-9"},
        command=("install", "run-9"),
    ),
    Case(
        "a candidate to install",
        (f"The run '{RUN}' has no candidate 7", "List its candidates"),
        tool="install_skill",
        arguments={"run_id": RUN, "candidate": 7},
        command=("install", RUN, "--candidate", "7"),
    ),
]


# --- ratings ---


def rated(*ratings: int) -> Callable[[Stage], None]:
    def library(stage: Stage) -> None:
        rows = [conversation(f"c-{number}") for number in range(len(ratings))]
        notes = [
            {"trace_id": row["id"], "rating": rating, "created_at": START.isoformat()}
            for row, rating in zip(rows, ratings, strict=True)
        ]
        stage.backend.import_traces(jsonl(rows), annotations=jsonl(notes))

    return library


def ratings(id: str, library: Callable[[Stage], None], *says: str) -> Case:
    return Case(id, says, tool="train_reward_model", command=("train",), library=library)


RATINGS = [
    ratings(
        "only positive ratings",
        rated(1, 1, 1),
        "give 0 preference pairs",
        "3 positive, 0 negative",
        "rate some with -1 too",
    ),
    ratings(
        "exactly one pair", rated(1, -1), "give 1 preference pair;", "Rate at least one more"
    ),
    ratings(
        "nothing imported", lambda stage: None, "give 0 preference pairs", "Nothing is rated yet"
    ),
]


# --- reward models' files ---


def damaged(change: Callable[[Path], None]) -> Callable[[Stage], None]:
    """The furnished library with its reward model's files changed behind its back."""

    def library(stage: Stage) -> None:
        furnish(stage)
        change(JobFolder(stage.settings.reward_models_dir / MODEL).model_path)

    return library


def without_stats(model: Path) -> None:
    (model / "reward_stats.json").unlink()


def with_pickle(model: Path) -> None:
    (model / "pytorch_model.bin").write_bytes(b"\x80\x04N.")


def of_version_9(model: Path) -> None:
    (model / "tokenizer_config.json").write_text('{"stash_input_version": 9}', encoding="utf-8")


CHECKPOINTS = {
    "no reward_stats.json": (
        without_stats,
        ("has no reward_stats.json: it was trained before calibration", "Retrain it"),
    ),
    "a pickle": (with_pickle, ("pytorch_model.bin, which can run code", "Delete it")),
    "an unknown input version": (
        of_version_9,
        ("stash_input_version 9, which is unknown", "Use a newer release"),
    ),
}

DAMAGED = [
    Case(
        f"{id}, at a run",
        says,
        tool="start_gepa_run",
        arguments={"reward_model_id": MODEL, **TASK_MODEL},
        command=("run", *TASK),
        library=damaged(change),
    )
    for id, (change, says) in CHECKPOINTS.items()
]


def given(change: Callable[[Path], None], *, packed: bool) -> Callable[[Stage], None]:
    """A checkpoint in the project's folder, as a folder or as an archive."""

    def library(stage: Stage) -> None:
        folder = stage.settings.project_dir / "model"
        write_checkpoint(folder)
        change(folder)
        if packed:
            with tarfile.open(folder.with_suffix(".tar.gz"), "w:gz") as tar:
                tar.add(folder, "reward-model")

    return library


IMPORTED = [
    Case(f"{id}, in {name}", says, command=("import-model", name), library=given(change, packed=p))
    for id, (change, says) in CHECKPOINTS.items()
    for name, p in (("model", False), ("model.tar.gz", True))
]


def escaping(stage: Stage) -> None:
    given(lambda folder: None, packed=False)(stage)
    with tarfile.open(stage.settings.project_dir / "model.tar.gz", "w:gz") as tar:
        tar.add(stage.settings.project_dir / "model", "reward-model")
        tar.add(stage.settings.project_dir / "model" / "config.json", "reward-model/../../evil")


IMPORTED += [
    Case(
        "a path outside its folder",
        ("writes outside its folder: 'reward-model/../../evil'", "Make the archive again"),
        command=("import-model", "model.tar.gz"),
        library=escaping,
    ),
    Case(
        "no archive at all",
        ("There is no archive at", "gone.tar.gz", "Check the path"),
        command=("import-model", "gone.tar.gz"),
    ),
]


# --- runs ---


def begun_by_the_assistant(stage: Stage) -> None:
    furnish(stage)
    rows = [
        {"id": f"s-{number}", "steps": [{"role": "assistant", "content": "Hello!"}, USER]}
        for number in range(2)
    ]
    stage.backend.import_traces(jsonl(rows))


RUNS = [
    Case(
        "no input before the first assistant step",
        ("None of the 2 conversations can be replayed: starts with the assistant (2)", "Choose"),
        tool="start_gepa_run",
        arguments={"reward_model_id": MODEL, **TASK_MODEL, "trace_ids": ["s-*"]},
        command=("run", *TASK, "--trace", "s-*"),
        library=begun_by_the_assistant,
    ),
    Case(
        "a budget that is too small",
        ("A budget of 5 metric calls", "max_metric_calls=48"),
        tool="start_gepa_run",
        arguments={"reward_model_id": MODEL, **TASK_MODEL, "max_metric_calls": 5},
        command=("run", *TASK, "--max-metric-calls", "5"),
    ),
]


# --- the doors ---

CASES = [*FILES, *ANNOTATIONS, *IDS, *RATINGS, *DAMAGED, *IMPORTED, *RUNS]


def prepare(case: Case, stage: Stage) -> dict[str, str]:
    """What is kept before the bad input comes."""
    case.library(stage)
    for name, data in case.files.items():
        (stage.settings.project_dir / name).write_bytes(data)
    return content(stage.settings)


def assert_says(text: str, says: tuple[str, ...]) -> None:
    for words in says:
        assert words in text
    assert "Traceback" not in text
    assert "unexpected" not in text.lower()
    assert len(text) < 3000


@pytest.mark.anyio
@pytest.mark.parametrize("case", ids([case for case in CASES if case.tool]))
async def test_the_tool_says_what_is_wrong_and_what_to_do_and_changes_nothing(
    case: Case, doors: Doors
) -> None:
    before = prepare(case, doors.stage)
    is_error, text = await doors.call(case.tool, **case.arguments)
    assert is_error
    assert_says(text, case.says)
    assert content(doors.stage.settings) == before


@pytest.mark.parametrize("case", ids([case for case in CASES if case.command]))
def test_the_command_says_what_is_wrong_and_what_to_do_and_changes_nothing(
    case: Case, doors: Doors
) -> None:
    before = prepare(case, doors.stage)
    said = doors.command(*case.command)
    assert (said.code, said.out) == (1, "")
    assert "Error: " in said.err
    assert_says(said.err, case.says)
    for_programs = doors.command(*case.command, "--json")
    assert for_programs.code == 1
    error = json.loads(for_programs.out)["error"]
    assert_says(error["message"], case.says)
    assert error["code"] != "error"
    assert content(doors.stage.settings) == before
