import asyncio
import os
import random
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest
from support.claude_stand_in import StandIn, stand_in

from stash_mcp.errors import (
    EmptyReplyError,
    ModelAuthError,
    ModelError,
    ModelNotFoundError,
    ModelRateLimitError,
    ModelServerError,
    ModelUnreachableError,
    RequestRejectedError,
)
from stash_mcp.models import Message
from stash_mcp.optimization.claude_code import MAX_PROCESSES, ClaudeCodeModel
from stash_mcp.optimization.commands import end_commands
from stash_mcp.optimization.memory import Answer, Memory, Tool
from stash_mcp.optimization.model import RetryPolicy
from stash_mcp.optimization.opening import open_model
from stash_mcp.storage.calls import CallStore

HELLO = [
    Message(role="system", content="Sell shoes. Größe 44."),
    Message(role="user", content="$(whoami) --help"),
]


async def _no_pause(seconds: float) -> None:
    return None


def model_of(there: StandIn, attempts: int = 1, **options: object) -> ClaudeCodeModel:
    retry = RetryPolicy(attempts=attempts, sleep=_no_pause, jitter=random.Random(1))
    return ClaudeCodeModel(
        "claude-code/haiku",
        command=there.path,
        retry=retry,
        environ=there.environ,
        **options,  # type: ignore[arg-type]
    )


def assert_gone(pid: int) -> None:
    """An ended process may stand in the table until its parent has looked."""
    deadline = time.monotonic() + 10
    while _is_alive(pid):
        assert time.monotonic() < deadline, f"process {pid} goes on"


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    state = Path(f"/proc/{pid}/stat")
    return not state.exists() or state.read_text("utf-8").rpartition(")")[2].split()[0] != "Z"


def ask(model: ClaudeCodeModel, messages: list[Message] = HELLO) -> Answer:
    return asyncio.run(model.ask(messages))


def test_the_prompt_goes_to_standard_input_and_the_system_prompt_into_a_file(
    tmp_path: Path,
) -> None:
    there = stand_in(tmp_path)
    assert ask(model_of(there)).text == "Hello."
    [request] = there.requests()
    assert request["prompt"] == "$(whoami) --help"
    assert request["system"] == "Sell shoes. Größe 44."
    assert "$(whoami)" not in " ".join(request["arguments"])


def test_it_gets_no_tools_no_settings_no_servers_and_an_empty_folder(tmp_path: Path) -> None:
    there = stand_in(tmp_path)
    ask(model_of(there))
    [request] = there.requests()
    arguments = request["arguments"]
    assert arguments[arguments.index("--tools") + 1] == ""
    assert arguments[arguments.index("--setting-sources") + 1] == ""
    assert {"--print", "--safe-mode", "--strict-mcp-config", "--no-session-persistence"} <= set(
        arguments
    )
    assert arguments[arguments.index("--model") + 1] == "haiku"
    assert request["files"] == ["system.txt"]
    assert not os.path.exists(request["folder"])


def test_several_messages_of_the_user_become_one(tmp_path: Path) -> None:
    there = stand_in(tmp_path)
    ask(model_of(there), [Message(role="user", content=text) for text in ("One.", "Two.")])
    assert there.requests()[0]["prompt"] == "One.\n\nTwo."


def test_what_was_answered_before_is_quoted_before_the_last_message(tmp_path: Path) -> None:
    there = stand_in(tmp_path)
    said = (("user", "Name it."), ("assistant", "Shoe!"), ("user", "No signs."))
    ask(model_of(there), [Message(role=role, content=text) for role, text in said])
    prompt = there.requests()[0]["prompt"]
    assert prompt.index("user: Name it.") < prompt.index("assistant: Shoe!")
    assert prompt.endswith("No signs.")


def test_tokens_and_the_cost_that_the_command_reports_are_counted(tmp_path: Path) -> None:
    model = model_of(stand_in(tmp_path))
    ask(model)
    ask(model)
    usage = model.usage
    assert (usage.calls, usage.prompt_tokens, usage.completion_tokens) == (2, 26, 14)
    assert usage.cost_usd == pytest.approx(0.004)
    assert model.is_priced


def test_an_answer_without_a_cost_leaves_the_cost_unknown(tmp_path: Path) -> None:
    model = model_of(stand_in(tmp_path, total_cost_usd=None))
    ask(model)
    assert model.usage.cost_usd is None


@pytest.mark.parametrize(
    ("status", "words", "kind"),
    [
        (400, "API Error: 400 no", RequestRejectedError),
        (413, "Request too large (max 32MB).", RequestRejectedError),
        (401, "Failed to authenticate. API Error: 401", ModelAuthError),
        (403, "API Error: 403", ModelAuthError),
        (404, "There's an issue with the selected model (x).", ModelNotFoundError),
        (429, "API Error: Request rejected (429)", ModelRateLimitError),
        (500, "API Error: 500", ModelServerError),
        (529, "API Error: 529 overloaded", ModelServerError),
        (None, "Not logged in · Please run /login", ModelAuthError),
        (None, "API Error: Connection refused (ECONNREFUSED)", ModelUnreachableError),
        (None, "response exceeded the 32000 output token maximum", EmptyReplyError),
        (None, "Prompt is too long", RequestRejectedError),
        (None, "Something that no release has said yet", ModelServerError),
    ],
)
def test_each_failure_of_the_command_has_its_error(
    tmp_path: Path, status: int | None, words: str, kind: type[ModelError]
) -> None:
    there = stand_in(tmp_path, is_error=True, api_error_status=status, result=words, exit=1)
    with pytest.raises(kind) as raised:
        ask(model_of(there))
    assert words in str(raised.value)
    assert raised.value.fix


def test_a_command_that_spent_money_on_an_error_has_its_cost_counted(tmp_path: Path) -> None:
    there = stand_in(
        tmp_path, is_error=True, result="exceeded the 32000 output token maximum", exit=1
    )
    model = model_of(there)
    with pytest.raises(EmptyReplyError):
        ask(model)
    assert model.usage.cost_usd == pytest.approx(0.002)


def test_an_empty_answer_is_this_requests_failure(tmp_path: Path) -> None:
    with pytest.raises(EmptyReplyError):
        ask(model_of(stand_in(tmp_path, result=" \n")))


@pytest.mark.parametrize("raw", ["", "Segmentation fault", "[]", "{}", '{"is_error": "maybe"}'])
def test_output_that_is_no_answer_is_shown_and_tried_again(tmp_path: Path, raw: str) -> None:
    there = stand_in(tmp_path, raw=raw, exit=1, stderr="it broke with sk-secret-1234")
    with pytest.raises(ModelServerError) as raised:
        ask(model_of(there, attempts=3, secrets=("sk-secret-1234",)))
    assert len(there.requests()) == 3
    assert "it broke" in str(raised.value)
    assert "sk-secret" not in str(raised.value)


def test_a_command_that_hangs_is_ended(tmp_path: Path) -> None:
    with pytest.raises(ModelServerError) as raised:
        ask(model_of(stand_in(tmp_path, hang=True), timeout=0.5))
    assert "0.5 s" in str(raised.value)


def test_what_a_command_leaves_behind_neither_delays_its_answer_nor_lives_on(
    tmp_path: Path,
) -> None:
    there = stand_in(tmp_path, leaves=True)
    assert ask(model_of(there, timeout=60.0)).text == "Hello."
    assert_gone(int((tmp_path / "requests.jsonl.child").read_text("utf-8")))


def test_a_command_that_hangs_takes_its_children_along(tmp_path: Path) -> None:
    there = stand_in(tmp_path, leaves=True, hang=True)
    with pytest.raises(ModelServerError):
        ask(model_of(there, timeout=1.0))
    assert_gone(int((tmp_path / "requests.jsonl.child").read_text("utf-8")))


def test_commands_and_their_folders_end_with_the_jobs_process(tmp_path: Path) -> None:
    there = stand_in(tmp_path, leaves=True, hang=True)

    async def cut_off() -> None:
        asking = asyncio.create_task(model_of(there, timeout=60.0).ask(HELLO))
        while not there.requests():
            await asyncio.sleep(0.01)
        end_commands()
        with pytest.raises(ModelServerError):
            await asking

    asyncio.run(asyncio.wait_for(cut_off(), 30))
    assert not os.path.exists(there.requests()[0]["folder"])
    assert_gone(int((tmp_path / "requests.jsonl.child").read_text("utf-8")))


@pytest.mark.parametrize(
    "odd",
    [
        {"total_cost_usd": -5},
        {"total_cost_usd": 1e308},
        {"usage": {"output_tokens": -1}},
        {"usage": {"input_tokens": 10**30}},
    ],
)
def test_numbers_that_cannot_be_are_not_believed(tmp_path: Path, odd: dict[str, object]) -> None:
    model = model_of(stand_in(tmp_path, **odd))
    with pytest.raises(ModelServerError):
        ask(model)
    assert model.usage.calls == 0


def test_control_characters_of_the_command_reach_no_message(tmp_path: Path) -> None:
    there = stand_in(tmp_path, raw="\x1b[2J\x07 broken \x00", exit=1)
    with pytest.raises(ModelServerError) as raised:
        ask(model_of(there))
    assert str(raised.value).isprintable()


def test_a_missing_command_is_told_before_anything_is_asked(tmp_path: Path) -> None:
    with pytest.raises(ModelNotFoundError) as raised:
        ClaudeCodeModel("claude-code/haiku", command=os.fspath(tmp_path / "claude"))
    assert "PATH" in str(raised.value)


@pytest.mark.parametrize("name", ["", "--dangerously-skip-permissions", "a b", "x;y", "-m"])
def test_a_name_that_is_no_model_never_becomes_an_option(tmp_path: Path, name: str) -> None:
    with pytest.raises(ModelNotFoundError):
        ClaudeCodeModel(f"claude-code/{name}", command=stand_in(tmp_path).path)


def test_a_session_of_the_command_is_not_taken_for_its_own(tmp_path: Path) -> None:
    there = stand_in(tmp_path)
    environ = {**there.environ, "CLAUDECODE": "1", "ANTHROPIC_API_KEY": "k"}
    model = ClaudeCodeModel(
        "claude-code/haiku", "http://localhost:1/", command=there.path, environ=environ
    )
    ask(model)
    shown = there.requests()[0]["environ"]
    assert shown == {
        "ANTHROPIC_API_KEY": "k",
        "ANTHROPIC_BASE_URL": "http://localhost:1/",
        "MAX_THINKING_TOKENS": "0",
    }


def test_no_more_processes_run_at_once_than_a_machine_bears(tmp_path: Path) -> None:
    model = model_of(stand_in(tmp_path), max_concurrency=64)
    assert model._in_flight.limit == MAX_PROCESSES


def test_a_request_for_a_tools_call_is_refused_without_asking(tmp_path: Path) -> None:
    there = stand_in(tmp_path)
    with pytest.raises(RequestRejectedError):
        asyncio.run(model_of(there).ask(HELLO, Tool("pick", "Pick.", {"type": "object"})))
    assert there.requests() == []


def test_an_answer_that_was_paid_for_is_not_asked_again(tmp_path: Path) -> None:
    there = stand_in(tmp_path)
    store = CallStore(tmp_path / "calls.db", lambda: datetime.now(UTC))
    for _ in range(2):
        model = model_of(there, memory=Memory(store))
        assert ask(model).text == "Hello."
    assert len(there.requests()) == 1
    assert model.usage.remembered == 1


def test_the_name_of_a_model_leads_to_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    there = stand_in(tmp_path, result="Found.")
    monkeypatch.setenv("STASH_MCP_CLAUDE", there.path)
    for name, value in there.environ.items():
        monkeypatch.setenv(name, value)
    assert asyncio.run(open_model("claude-code/sonnet").ask(HELLO)).text == "Found."
