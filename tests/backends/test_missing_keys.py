"""A run whose models' key is not set says so when it is started, and is queued all the same."""

import pytest
from support.doors import Doors
from support.staging import Stage

from stash_mcp.backends.base import RunOrder, StartedRun
from stash_mcp.settings import missing_key

HOSTED = "anthropic/claude-haiku-4-5"


@pytest.fixture(autouse=True)
def _no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)


def started(stage: Stage, **fields: object) -> StartedRun:
    if not stage.backend.list_traces(limit=1, offset=0).total:
        stage.conversations()
    known = stage.backend.list_reward_models()
    model = known[0] if known else stage.trained()
    order = {"reward_model_id": model.id, "task_model": HOSTED, "new": True, **fields}
    return stage.backend.start_run(RunOrder.model_validate(order))


def test_the_variable_the_models_and_what_to_do_are_named_before_anything_runs(
    stage: Stage,
) -> None:
    found = started(stage, reflection_model="anthropic/claude-opus-4-5")
    [warning] = found.warnings
    assert "ANTHROPIC_API_KEY is not set here" in warning
    assert f"{HOSTED} and anthropic/claude-opus-4-5" in warning
    assert found.run.status == "queued"
    assert len(started(stage, reflection_model="openai/gpt-5").warnings) == 2


@pytest.mark.parametrize(
    ("environment", "fields"),
    [
        ({"ANTHROPIC_API_KEY": "sk-1"}, {}),
        ({"ANTHROPIC_AUTH_TOKEN": "t"}, {}),
        ({"ANTHROPIC_BASE_URL": "http://127.0.0.1:9"}, {}),
        ({}, {"task_api_base": "http://127.0.0.1:9/v1"}),
        ({}, {"task_model": "ollama/qwen3"}),
        ({}, {"task_model": "gpt-5"}),
    ],
)
def test_what_may_work_without_that_variable_is_not_warned_of(
    stage: Stage,
    monkeypatch: pytest.MonkeyPatch,
    environment: dict[str, str],
    fields: dict[str, object],
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert started(stage, **fields).warnings == ()


@pytest.mark.parametrize("value", ["", " ", "${ANTHROPIC_API_KEY}"])
def test_a_variable_that_a_client_did_not_fill_is_none(value: str) -> None:
    assert missing_key(HOSTED, {"ANTHROPIC_API_KEY": value}) == "ANTHROPIC_API_KEY"


@pytest.mark.anyio
async def test_both_doors_show_it(stage: Stage, capsys: pytest.CaptureFixture[str]) -> None:
    stage.conversations()
    model = stage.trained().id
    doors = Doors(stage, capsys)
    is_error, text = await doors.call("start_gepa_run", reward_model_id=model, task_model=HOSTED)
    assert not is_error
    assert '"warning": "ANTHROPIC_API_KEY is not set here' in text
    said = doors.command("run", "--task-model", HOSTED, "--new", "--no-wait")
    assert "Warning: ANTHROPIC_API_KEY is not set here" in said.err
