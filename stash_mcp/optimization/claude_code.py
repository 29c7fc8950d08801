"""The installed `claude` command as a model: `claude-code/MODEL`, one process for one request.

It answers with the person's own login or key. It gets no tools, no settings, no hooks, no servers
and no project of the person's: it starts in an empty folder. The command puts a sentence of its own
before the system prompt, and notes on the date and the platform before the prompt, which cannot be
turned off.
"""

import json
import os
import re
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError

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
from stash_mcp.models import CLAUDE_CODE, Message, Usage
from stash_mcp.optimization.commands import Output, run_command
from stash_mcp.optimization.memory import Answer, Memory, Tool
from stash_mcp.optimization.model import EMPTY_FIX, Model, RetryPolicy
from stash_mcp.redaction import redact

MAX_PROCESSES = 4
"""Each takes about 300 MB and, at its start, half a second of a core."""
_NAME = re.compile(r"[A-Za-z0-9][\w.:@/\[\]-]*")
_WORDS_LIMIT = 600
_READ_LIMIT = 20_000

# What a session of the command leaves in the environment of what it starts, such as our server:
# with these the command takes itself for a part of that session.
_OF_A_SESSION = ("CLAUDECODE", "CLAUDE_CODE_ENTRYPOINT", "CLAUDE_CODE_SSE_PORT")
_OPTIONS = (
    *("--print", "--output-format", "json", "--tools", "", "--safe-mode", "--strict-mcp-config"),
    *("--setting-sources", "", "--disable-slash-commands", "--no-session-persistence"),
)

_STATUSES: dict[int, type[ModelError]] = {
    400: RequestRejectedError,
    413: RequestRejectedError,
    422: RequestRejectedError,
    401: ModelAuthError,
    402: ModelAuthError,
    403: ModelAuthError,
    404: ModelNotFoundError,
    429: ModelRateLimitError,
}
# Where the command gives no status: its own words, which differ between releases.
_WORDS: tuple[tuple[re.Pattern[str], type[ModelError]], ...] = tuple(
    (re.compile(pattern, re.IGNORECASE), kind)
    for pattern, kind in (
        (r"not logged in|/login|invalid api key|oauth token", ModelAuthError),
        (r"output token maximum", EmptyReplyError),
        (r"prompt is too long", RequestRejectedError),
        (r"usage limit|rate limit", ModelRateLimitError),
        (
            r"ECONNREFUSED|ENOTFOUND|EAI_AGAIN|unable to connect|connection (?:refused|error)",
            ModelUnreachableError,
        ),
    )
)
_FIXES: dict[type[ModelError], str] = {
    RequestRejectedError: "This conversation scores 0; the words above say why.",
    EmptyReplyError: EMPTY_FIX,
    ModelAuthError: "Run `claude` once and log in, or set ANTHROPIC_API_KEY; then resume the run.",
    ModelNotFoundError: "Write it as the command's --model takes it, such as claude-code/haiku.",
    ModelRateLimitError: "Wait until your limit is free again, then resume the run.",
    ModelUnreachableError: "Check the network and the proxy of the command, then resume the run.",
    ModelServerError: "Wait until it answers again, then resume the run.",
}


class ClaudeCodeModel(Model):
    """command: the executable. timeout: seconds for one request. environ: of its process; an
    `api_base` goes there as ANTHROPIC_BASE_URL. secrets: what is masked in errors.
    """

    def __init__(
        self,
        model: str,
        api_base: str | None = None,
        *,
        command: str = "claude",
        timeout: float = 300.0,
        max_concurrency: int = MAX_PROCESSES,
        retry: RetryPolicy | None = None,
        secrets: Sequence[str] = (),
        memory: Memory | None = None,
        usage: Usage | None = None,
        environ: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(
            model,
            api_base,
            max_concurrency=min(max_concurrency, MAX_PROCESSES),
            retry=retry,
            memory=memory,
            usage=usage,
        )
        self._name = _name(model)
        self._command = _found(command)
        self._timeout = timeout
        self._secrets = tuple(secrets)
        self._environ = _environment(environ or {}, api_base)

    @property
    def is_priced(self) -> bool:
        """The command says what each answer cost, or would cost without a subscription."""
        return True

    async def _ask_once(self, messages: Sequence[Message], tool: Tool | None) -> Answer:
        if tool is not None:
            raise RequestRejectedError(f"'{self.model}' knows no tools.", "Ask for a text instead.")
        with _empty_folder() as folder:
            system = folder / "system.txt"
            system.write_text(_system(messages), encoding="utf-8", newline="\n")
            said = await self._run(folder, system, prompt(messages))
        reply = self._read(said)
        self._count(reply.tokens_in, reply.usage.output_tokens, reply.total_cost_usd)
        return self._answer(reply)

    async def _run(self, folder: Path, system: Path, text: str) -> Output:
        command = (
            *(self._command, *_OPTIONS),
            *("--model", self._name, "--system-prompt-file", os.fspath(system)),
        )
        try:
            return await run_command(command, text, folder, self._environ, self._timeout)
        except TimeoutError as error:
            raise ModelServerError(
                f"The model '{self.model}' did not answer within {self._timeout:g} s.",
                _FIXES[ModelServerError],
            ) from error
        except OSError as error:
            raise ModelNotFoundError(
                f"The command '{self._command}' cannot be started: {error.strerror or error}.",
                "Check that it is Claude Code's executable.",
            ) from error

    def _read(self, said: Output) -> "_Reply":
        line = (said.out.strip().splitlines() or [""])[-1]
        try:
            return _Reply.model_validate(json.loads(line))
        except (ValueError, ValidationError) as error:
            raise self._failure(said.err or said.out or "it said nothing", None) from error

    def _answer(self, reply: "_Reply") -> Answer:
        if reply.is_error:
            raise self._failure(reply.result or reply.subtype, reply.api_error_status)
        if not reply.result.strip():
            raise EmptyReplyError(f"The model '{self.model}' answered nothing.", EMPTY_FIX)
        finish_reason = "length" if reply.stop_reason == "max_tokens" else reply.stop_reason
        return Answer(text=reply.result, finish_reason=finish_reason)

    def _failure(self, words: str, status: int | None) -> ModelError:
        kind = _kind(words, status)
        plain = "".join(letter if letter.isprintable() else " " for letter in words[:_READ_LIMIT])
        shown = redact(" ".join(plain.split()), self._secrets)[:_WORDS_LIMIT]
        return kind(f"The command of '{self.model}' failed: {shown}", _FIXES[kind])


# A sum that a bound is held against takes no number that cannot be.
Tokens = Annotated[int, Field(ge=0, le=10**9)]


class _Spent(BaseModel):
    model_config = ConfigDict(extra="ignore")

    input_tokens: Tokens = 0
    cache_creation_input_tokens: Tokens = 0
    cache_read_input_tokens: Tokens = 0
    output_tokens: Tokens = 0


class _Reply(BaseModel):
    """The command's one line of JSON, as far as it is used."""

    model_config = ConfigDict(extra="ignore")

    is_error: bool
    result: str = ""
    subtype: str = ""
    stop_reason: str | None = None
    api_error_status: int | None = None
    total_cost_usd: float | None = Field(None, ge=0, le=1_000)
    usage: _Spent = _Spent()

    @property
    def tokens_in(self) -> int:
        spent = self.usage
        cached = spent.cache_creation_input_tokens + spent.cache_read_input_tokens
        return spent.input_tokens + cached


def prompt(messages: Sequence[Message]) -> str:
    """What is written to the command's standard input, which takes one message of a user: several
    of them are put together, and what an assistant said between them is quoted before the last.
    """
    said = [message for message in messages if message.role != "system"]
    if all(message.role == "user" for message in said):
        return "\n\n".join(message.content for message in said)
    earlier = "\n\n".join(f"{message.role}: {message.content}" for message in said[:-1])
    return f"Our conversation so far:\n\n{earlier}\n\nAnswer now to this:\n\n{said[-1].content}"


def _system(messages: Sequence[Message]) -> str:
    # An empty file would bring the command's own prompt, that of a programmer.
    texts = [message.content for message in messages if message.role == "system"]
    return "\n\n".join(texts) or "Answer the user."


def _name(model: str) -> str:
    name = model.removeprefix(CLAUDE_CODE)
    if _NAME.fullmatch(name) is None:
        raise ModelNotFoundError(
            f"'{model}' names no model of the claude command.", _FIXES[ModelNotFoundError]
        )
    return name


def _found(command: str) -> str:
    path = shutil.which(command)
    if path is None:
        raise ModelNotFoundError(
            f"The command '{command}' is not on the PATH.",
            "Install Claude Code, or name another model.",
        )
    return path


def _environment(environ: Mapping[str, str], api_base: str | None) -> dict[str, str]:
    place = {} if api_base is None else {"ANTHROPIC_BASE_URL": api_base}
    kept = {name: value for name, value in environ.items() if name not in _OF_A_SESSION}
    return {
        # A plain answer, as any other model gives it; whoever wants more sets it.
        "MAX_THINKING_TOKENS": "0",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_AUTOUPDATER": "1",
        **kept,
        # Its own ten retries would hide a limit from ours for minutes.
        "CLAUDE_CODE_MAX_RETRIES": "0",
        **place,
    }


@contextmanager
def _empty_folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(
        prefix="stash-skills-claude-", ignore_cleanup_errors=True
    ) as name:
        yield Path(name)


def _kind(words: str, status: int | None) -> type[ModelError]:
    if status is not None:
        return _STATUSES.get(status, ModelServerError)
    for pattern, kind in _WORDS:
        if pattern.search(words):
            return kind
    return ModelServerError
