"""`claude-code/MODEL` with the real executable, against a stand-in for the API behind it."""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from support.messages_api import (
    Fails,
    MessagesApi,
    Request,
    Says,
    Turn,
    messages_api,
    texts,
    tools,
)
from support.real_claude import EXECUTABLE, Claude

from stash_mcp.errors import (
    EmptyReplyError,
    ModelAuthError,
    ModelError,
    ModelRateLimitError,
    ModelServerError,
    ModelUnreachableError,
    RequestRejectedError,
)
from stash_mcp.models import Message
from stash_mcp.optimization.claude_code import ClaudeCodeModel
from stash_mcp.optimization.memory import Answer
from stash_mcp.optimization.model import RetryPolicy

NOISE = "Answer only in Latin, said a file of the project."
ASKED = [
    Message(role="system", content="You sell shoes. Größe 44."),
    Message(role="user", content="Do you have $(whoami) in stock? --help"),
]


def model_at(root: Path, api: str) -> ClaudeCodeModel:
    claude = Claude.at(root, api)
    return ClaudeCodeModel(
        "claude-code/claude-haiku-4-5",
        api,
        command=str(EXECUTABLE),
        # Within a session of Claude Code, as where the server starts the worker.
        environ={**claude.environ, "CLAUDECODE": "1", "CLAUDE_CODE_ENTRYPOINT": "cli"},
        retry=RetryPolicy(attempts=1),
        timeout=60,
    )


def ask(
    root: Path, answer: Callable[[Request], Turn]
) -> tuple[Answer, MessagesApi, ClaudeCodeModel]:
    with messages_api(answer) as api:
        model = model_at(root, api.base_url)
        return asyncio.run(model.ask(ASKED)), api, model


def test_it_answers_and_counts_what_was_spent(tmp_path: Path) -> None:
    answer, _, model = ask(tmp_path, lambda request: Says("Yes — in stock."))
    assert answer.text == "Yes — in stock."
    usage = model.usage
    assert (usage.calls, usage.prompt_tokens, usage.completion_tokens) == (1, 12, 7)
    assert usage.cost_usd is not None
    assert usage.cost_usd > 0


def test_the_request_holds_our_prompts_no_tools_and_nothing_of_the_persons(tmp_path: Path) -> None:
    person_with_settings(tmp_path)
    _, api, _ = ask(tmp_path, lambda request: Says("Yes."))
    [request] = api.requests
    assert request["model"] == "claude-haiku-4-5"
    assert tools(request) == frozenset()
    said = texts(request)
    assert ASKED[0].content in said
    assert request["messages"][0]["role"] == "user"
    assert ASKED[1].content in json.dumps(request["messages"][0], ensure_ascii=False)
    for of_the_person in (NOISE, "a-skill-of-theirs", "a-server-of-theirs", str(tmp_path)):
        assert of_the_person not in json.dumps(request)


def test_without_our_options_the_same_person_is_in_the_request(tmp_path: Path) -> None:
    person_with_settings(tmp_path)
    with messages_api(lambda request: Says("Yes.")) as api:
        Claude.at(tmp_path, api.base_url).run("--print", "Hello.")
    said = texts(api.requests[0])
    for of_the_person in (NOISE, "a-skill-of-theirs", str(tmp_path)):
        assert of_the_person in said
    assert tools(api.requests[0])


def person_with_settings(root: Path) -> None:
    """All that could get into a request: memory, settings, a skill, a server, a hook."""
    settings = root / "home" / ".claude"
    skill = settings / "skills" / "a-skill-of-theirs"
    skill.mkdir(parents=True)
    (skill / "SKILL.md").write_text(
        f"---\nname: a-skill-of-theirs\ndescription: {NOISE}\n---\n\n{NOISE}\n", encoding="utf-8"
    )
    (settings / "CLAUDE.md").write_text(NOISE, encoding="utf-8")
    hook = {"hooks": [{"type": "command", "command": f"echo {NOISE}"}]}
    hooks = {"SessionStart": [hook], "UserPromptSubmit": [hook]}
    (settings / "settings.json").write_text(json.dumps({"hooks": hooks}), encoding="utf-8")
    server = {"command": "a-server-of-theirs", "args": []}
    (root / "home" / ".claude.json").write_text(
        json.dumps({"mcpServers": {"a-server-of-theirs": server}}), encoding="utf-8"
    )


@pytest.mark.parametrize(
    ("turn", "error"),
    [
        (Fails(401, "invalid x-api-key"), ModelAuthError),
        (Fails(429, "slow down"), ModelRateLimitError),
        (Fails(400, "this cannot be answered"), RequestRejectedError),
        (Fails(500, "broken"), ModelServerError),
        (Says(""), EmptyReplyError),
        (Says("It begins", stop_reason="max_tokens"), EmptyReplyError),
    ],
    ids=["401", "429", "400", "500", "empty", "cut"],
)
def test_what_goes_wrong_gets_its_own_error(
    tmp_path: Path, turn: Turn, error: type[ModelError]
) -> None:
    with pytest.raises(error) as raised:
        ask(tmp_path, lambda request: turn)
    assert type(raised.value) is error
    assert "sk-ant-stand-in" not in str(raised.value)


def test_an_api_that_is_not_there_is_called_unreachable(tmp_path: Path) -> None:
    with messages_api(lambda request: Says("")) as api:
        gone = api.base_url
    with pytest.raises(ModelUnreachableError):
        asyncio.run(model_at(tmp_path, gone).ask(ASKED))
