"""Chat models through LiteLLM: one call, its errors in our words, its usage.

LiteLLM's own retries are off: they need a package that it does not depend on, and without it every
error loses its class.
"""

import asyncio
import re
from collections.abc import Sequence
from typing import Any

import litellm
from litellm import exceptions as raised

from stash_mcp.errors import (
    EmptyReplyError,
    ModelAuthError,
    ModelError,
    ModelNotFoundError,
    ModelServerError,
    sentence,
)
from stash_mcp.models import Message, Usage
from stash_mcp.optimization.memory import Answer, Memory, Tool
from stash_mcp.optimization.model import EMPTY_FIX, Model, RetryPolicy
from stash_mcp.optimization.model_errors import (
    FIXES,
    MODEL_EXCEPTIONS,
    PROBLEMS,
    WORDS_LIMIT,
    kind_of,
    providers_words,
    retry_after_seconds,
)
from stash_mcp.redaction import redact

# It prints advertisements on standard output otherwise.
litellm.suppress_debug_info = True

_SURROGATES = re.compile("[\ud800-\udfff]")
_PLACEHOLDER_KEY = "not-needed"


class ChatModel(Model):
    """model: LiteLLM's name, `provider/name`. api_base: URL of an OpenAI-compatible or other
    server. timeout: seconds for one request. secrets: what is masked in errors.
    """

    def __init__(
        self,
        model: str,
        api_base: str | None = None,
        *,
        timeout: float = 180.0,
        max_concurrency: int = 8,
        retry: RetryPolicy | None = None,
        secrets: Sequence[str] = (),
        memory: Memory | None = None,
        usage: Usage | None = None,
    ) -> None:
        super().__init__(
            model,
            api_base,
            max_concurrency=max_concurrency,
            retry=retry,
            memory=memory,
            usage=usage,
        )
        self._check_provider()
        self._timeout = timeout
        self._secrets = tuple(secrets)

    def _check_provider(self) -> None:
        # Unknown providers look like a rejected request later, which would score 0 in silence.
        try:
            litellm.get_llm_provider(self.model, api_base=self.api_base)
        except raised.BadRequestError as error:
            raise ModelNotFoundError(
                f"The model's name '{self.model}' names no provider that is known.",
                "Write it as provider/name, such as openai/gpt-5 or anthropic/claude-sonnet-5; for "
                "an OpenAI-compatible server, openai/NAME with its base URL.",
            ) from error

    async def _ask_once(self, messages: Sequence[Message], tool: Tool | None) -> Answer:
        try:
            # The library's limit is for each read: a server that dribbles would never reach it.
            async with asyncio.timeout(self._timeout):
                response = await litellm.acompletion(
                    model=self.model,
                    messages=[message.model_dump() for message in messages],
                    timeout=self._timeout,
                    max_retries=0,
                    **self._place(),
                    **_tool_parameters(tool),
                )
        except MODEL_EXCEPTIONS as error:
            raise self._translated(error) from error
        except TimeoutError as error:
            raise ModelServerError(
                f"The model '{self.model}' did not answer within {self._timeout:g} s.",
                FIXES[ModelServerError],
            ) from error
        usage = getattr(response, "usage", None)
        self._count(
            _tokens(usage, "prompt_tokens"),
            _tokens(usage, "completion_tokens"),
            self._cost(response),
        )
        return _answer(response, self.model, tool)

    def _place(self) -> dict[str, str]:
        if self.api_base is None:
            return {}
        place = {"api_base": self.api_base}
        if not litellm.validate_environment(self.model)["keys_in_environment"]:
            # The client library refuses to send a request without a key, wanted or not.
            place["api_key"] = _PLACEHOLDER_KEY
        return place

    def _retry_after(self, error: BaseException) -> float | None:
        return retry_after_seconds(error.__cause__)

    @property
    def is_priced(self) -> bool:
        """Whether what a call costs is known."""
        if self.api_base is not None:
            return False
        try:
            return litellm.get_model_info(self.model).get("input_cost_per_token") is not None
        except raised.ModelNotMappedError:
            return False

    def _cost(self, response: Any) -> float | None:
        # A server of one's own may echo a priced model's name: its price is not that one.
        if self.api_base is not None:
            return None
        cost = response._hidden_params.get("response_cost")
        return None if cost is None else float(cost)

    def _translated(self, error: Exception) -> ModelError:
        kind = kind_of(error)
        where = f"'{self.model}'" + (f" at {self.api_base}" if self.api_base else "")
        # Masked before it is cut: half a key would not be known as one.
        words = redact(providers_words(error), self._secrets)
        words = words if len(words) <= WORDS_LIMIT else words[:WORDS_LIMIT] + "..."
        return kind(f"{PROBLEMS[kind].format(where=where)}: {sentence(words)}", self._fix(kind))

    def _fix(self, kind: type[ModelError]) -> str:
        if kind is ModelAuthError:
            return self._key_fix()
        return FIXES[kind]

    def _key_fix(self) -> str:
        missing = litellm.validate_environment(self.model)["missing_keys"]
        if missing:
            names = " and ".join(missing)
            return (
                f"{names} is not set: set it in the environment that the command or the MCP "
                "server starts in, and start the run again."
            )
        return "Check that the key in the environment is valid and may use this model."


def _tool_parameters(tool: Tool | None) -> dict[str, Any]:
    if tool is None:
        return {}
    function = {
        "name": tool.name,
        "description": tool.description,
        "parameters": tool.parameters,
    }
    return {
        "tools": [{"type": "function", "function": function}],
        "tool_choice": {"type": "function", "function": {"name": tool.name}},
    }


def _answer(response: Any, model: str, tool: Tool | None) -> Answer:
    """What was said. An answer without a text, or without the tool's call where one was asked
    for, is this request's failure."""
    choices = getattr(response, "choices", None) or []
    if not choices:
        raise EmptyReplyError(f"The model '{model}' answered without a choice.", EMPTY_FIX)
    choice = choices[0]
    answer = Answer(
        text=_text(choice.message.content),
        finish_reason=getattr(choice, "finish_reason", None),
        # Nobody asked a task model for a call: one in its answer is no reply.
        tool_arguments=None if tool is None else _arguments(choice.message),
    )
    if answer.finish_reason == "content_filter":
        raise EmptyReplyError(f"The answer of the model '{model}' was filtered.", EMPTY_FIX)
    if not answer.text.strip() and answer.tool_arguments is None:
        raise EmptyReplyError(
            f"The model '{model}' answered with an empty text (finish reason: "
            f"{answer.finish_reason or 'none'}).",
            EMPTY_FIX,
        )
    return answer


def _text(content: object) -> str:
    """Halves of surrogate pairs, which a cut-off emoji leaves, can be neither stored nor scored."""
    return _SURROGATES.sub("\ufffd", content) if isinstance(content, str) else ""


def _arguments(message: Any) -> str | None:
    calls = getattr(message, "tool_calls", None) or []
    return _text(calls[0].function.arguments) if calls else None


def _tokens(usage: Any, field: str) -> int:
    """Servers of one's own send odd numbers, or none."""
    value = getattr(usage, field, 0)
    return max(0, int(value)) if isinstance(value, int | float) else 0
