"""What only the worker can find out: its job fails, the reason reaches both doors, and everything
else is as it was. The worker's loop, the training, LiteLLM and the servers are real.
"""

import functools
import gc
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import anyio.to_thread
import pytest
from support.doors import Doors, assert_says, content, is_sound
from support.model_server import ModelServer, Reply, Request, free_port, model_server, says
from support.staging import START, Stage, conversation, jsonl
from support.tiny_jobs import notes, talks, tiny_base, tiny_checkpoint

from stash_mcp.optimization import model, opening
from stash_mcp.worker.drain import drain

# Requests that are called off because the first one failed leave these behind, in LiteLLM.
pytestmark = pytest.mark.filterwarnings(
    "ignore:coroutine 'OpenAIChatCompletion.acompletion' was never awaited"
)


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_base(tmp_path_factory.mktemp("base"))


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory, base: Path) -> Path:
    return tiny_checkpoint(tmp_path_factory.mktemp("trained") / "model", base)


@pytest.fixture(autouse=True, scope="module")
def _swept() -> Iterator[None]:
    """What is left behind is gone before tests begin that do not ignore it."""
    yield
    gc.collect()


@pytest.fixture(autouse=True)
def _little_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    # What names the class in its annotations is loaded before the class is replaced.
    assert opening.open_model
    hasty = functools.partial(model.RetryPolicy, attempts=2, base_seconds=0.01)
    monkeypatch.setattr(model, "RetryPolicy", hasty)


def nonsense(request: Request) -> Reply:
    return says("As a language model, I like turtles.")


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with model_server(nonsense) as served:
        yield served


@pytest.fixture
def places(server: ModelServer) -> Mapping[str, str]:
    return {"NONSENSE": server.base_url, "NOWHERE": f"http://127.0.0.1:{free_port()}/v1"}


@dataclass(frozen=True)
class Case:
    """options: of the run, by the names of the tool's arguments; a value that is the name of a
    place stands for its URL. says: words of the reason.
    """

    id: str
    says: tuple[str, ...]
    options: Mapping[str, str] = field(default_factory=dict)

    def given(self, places: Mapping[str, str]) -> dict[str, str]:
        return {name: places.get(value, value) for name, value in self.options.items()}


NAMED = {"skill_name": "parcels", "skill_description": "Use it for parcels."}
BY_NONSENSE = {"task_model": "openai/task", "task_api_base": "NONSENSE"}

RUNS = [
    Case(
        "a task model that is not reachable",
        (
            "The model 'openai/task' at http://127.0.0.1:",
            "cannot be reached",
            "Check that the server is running",
        ),
        {"task_model": "openai/task", "task_api_base": "NOWHERE"},
    ),
    Case(
        "a reflection model that is not reachable",
        ("The model 'openai/reflection' at http://127.0.0.1:", "cannot be reached"),
        {
            **BY_NONSENSE,
            "reflection_model": "openai/reflection",
            "reflection_api_base": "NOWHERE",
        },
    ),
    Case(
        "a missing key of the task model",
        ("The model 'openai/gpt-4o-mini' refused the key", "OPENAI_API_KEY"),
        {"task_model": "openai/gpt-4o-mini"},
    ),
    Case(
        "a missing key of the reflection model",
        ("The model 'anthropic/claude-sonnet-5' refused the key", "ANTHROPIC_API_KEY"),
        {**BY_NONSENSE, "reflection_model": "anthropic/claude-sonnet-5"},
    ),
    Case(
        "a model's name without a provider",
        ("The model's name 'gpt-nobody' names no provider", "Write it as provider/name"),
        {"task_model": "gpt-nobody"},
    ),
    Case(
        "a reflection model that names the skill in nonsense three times",
        (
            "The reflection model 'openai/reflection' gave no valid name and description for the "
            "skill in 3 answers",
            "Give skill_name and skill_description yourself",
        ),
        {
            **BY_NONSENSE,
            "reflection_model": "openai/reflection",
            "reflection_api_base": "NONSENSE",
        },
    ),
    Case(
        "a reflection model that writes nonsense three times",
        (
            "The reflection model gave no usable body in 3 proposals",
            "Take another reflection model",
        ),
        {
            **BY_NONSENSE,
            **NAMED,
            "reflection_model": "openai/reflection",
            "reflection_api_base": "NONSENSE",
        },
    ),
]
in_each_case = pytest.mark.parametrize("case", [pytest.param(case, id=case.id) for case in RUNS])


@pytest.fixture
def furnished(doors: Doors, checkpoint: Path) -> Doors:
    """8 conversations with ratings and comments, and a reward model that scores them."""
    doors.stage.backend.import_traces(talks(), annotations=notes())
    doors.stage.backend.import_reward_model(checkpoint)
    return doors


def work(stage: Stage) -> None:
    drain(stage.settings)


def kept(stage: Stage) -> tuple[list[str], list[str], dict[str, str]]:
    """What no failed job may change: conversations, annotations, and files but the job's own."""
    backend = stage.backend
    files = {
        name: digest
        for name, digest in content(stage.settings).items()
        if name != "library" and "run-" not in name and not name.endswith("runs")
    }
    return list(backend.export_traces()), list(backend.export_annotations()), files


@pytest.mark.anyio
@in_each_case
async def test_a_run_that_cannot_work_tells_the_tool_its_reason(
    case: Case, furnished: Doors, places: Mapping[str, str]
) -> None:
    before = kept(furnished.stage)
    is_error, text = await furnished.call(
        "start_gepa_run", reward_model_id="rm-1", **case.given(places)
    )
    assert not is_error, text
    await anyio.to_thread.run_sync(work, furnished.stage)
    is_error, text = await furnished.call("get_run", run_id="run-2")
    state = json.loads(text)
    assert (is_error, state["status"]) == (False, "failed")
    assert_says(state["reason"], case.says)
    assert state["error"].rstrip().endswith(state["reason"])
    assert state["next"].startswith("Mend what the reason names")
    is_error, text = await furnished.call("install_skill", run_id="run-2")
    assert is_error
    assert_says(text, ("The run 'run-2' is failed", state["reason"]))
    assert kept(furnished.stage) == before
    assert is_sound(furnished.stage.settings)


@in_each_case
def test_a_run_that_cannot_work_ends_the_command_with_its_reason(
    case: Case, furnished: Doors, places: Mapping[str, str]
) -> None:
    before = kept(furnished.stage)
    furnished.session.sleep = lambda _seconds: work(furnished.stage)
    options = [
        part
        for name, value in case.given(places).items()
        for part in (f"--{name.replace('_', '-')}", value)
    ]
    said = furnished.command("run", *options)
    assert said.code == 1
    assert "Run run-2" in said.out
    assert "failed" in said.out
    assert_says(said.out + said.err, case.says)
    assert furnished.command("status", "run-2", "--follow", "--json").code == 1
    assert kept(furnished.stage) == before


# --- trainings ---


def same(stage: Stage) -> None:
    """Four conversations of the very same words, two of them rated up and two down."""
    rows = [conversation(f"same-{number}") for number in range(4)]
    ratings = [
        {"trace_id": row["id"], "rating": (-1) ** number, "created_at": START.isoformat()}
        for number, row in enumerate(rows)
    ]
    stage.backend.import_traces(jsonl(rows), annotations=jsonl(ratings))


EQUAL = (
    "All rated conversations are the same text to the model",
    "(std 0)",
    "Rate conversations that differ",
)


def differing(stage: Stage) -> None:
    stage.backend.import_traces(talks(), annotations=notes())


def without_weights(folder: Path) -> None:
    (folder / "model.safetensors").unlink()


NO_WEIGHTS = ("has no weights in the safetensors format", "Choose a base model")
trainings = pytest.mark.parametrize(
    ("library", "change", "reason"),
    [
        pytest.param(same, lambda folder: None, EQUAL, id="all texts equal"),
        pytest.param(differing, without_weights, NO_WEIGHTS, id="a base without weights"),
    ],
)


@pytest.mark.anyio
@trainings
async def test_a_training_that_cannot_work_tells_the_tool_its_reason(
    doors: Doors,
    tmp_path: Path,
    library: Callable[[Stage], None],
    change: Callable[[Path], None],
    reason: tuple[str, ...],
) -> None:
    stage, base = doors.stage, tiny_base(tmp_path / "base")
    library(stage)
    change(base)
    is_error, text = await doors.call("train_reward_model", base_model=str(base))
    assert not is_error, text
    await anyio.to_thread.run_sync(work, stage)
    _, text = await doors.call("get_run", run_id="rm-1")
    state = json.loads(text)
    assert state["status"] == "failed"
    assert_says(state["reason"], reason)
    assert not (stage.settings.reward_models_dir / "rm-1" / "model").exists()
    is_error, text = await doors.call(
        "start_gepa_run", reward_model_id="rm-1", task_model="openai/x"
    )
    assert is_error
    assert_says(text, ("The reward model 'rm-1' is failed, not trained", *reason))


@trainings
def test_a_training_that_cannot_work_ends_the_command_with_its_reason(
    doors: Doors,
    tmp_path: Path,
    library: Callable[[Stage], None],
    change: Callable[[Path], None],
    reason: tuple[str, ...],
) -> None:
    base = tiny_base(tmp_path / "base")
    library(doors.stage)
    change(base)
    doors.session.sleep = lambda _seconds: work(doors.stage)
    said = doors.command("train", "--base-model", str(base))
    assert said.code == 1
    assert_says(said.out, reason)
    assert not (doors.stage.settings.reward_models_dir / "rm-1" / "model").exists()
