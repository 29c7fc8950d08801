"""Chat models through LiteLLM: one call, its retries, its errors in our words, its usage.

LiteLLM's own retries are off: they need a package that it does not depend on, and without it every
error loses its class.
"""

import asyncio
import random
import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import litellm
from litellm import exceptions as raised
from tenacity import AsyncRetrying, RetryCallState, retry_if_exception_type, stop_after_attempt

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
from stash_mcp.models import Message, Usage
from stash_mcp.optimization.in_flight import InFlight
from stash_mcp.optimization.memory import Answer, Memory, Tool
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

_EMPTY_FIX = "This conversation scores 0; if many do, take another model."
_SURROGATES = re.compile("[\ud800-\udfff]")
_PLACEHOLDER_KEY = "not-needed"
_RETRIED = (ModelRateLimitError, ModelServerError, ModelUnreachableError)


@dataclass(frozen=True)
class RetryPolicy:
    """How often and how patiently one request is repeated.

    attempts: requests in all, 1 or more. base_seconds: the first pause; each next one doubles, up
    to max_seconds, with full jitter. A Retry-After of the server is honoured up to
    max_retry_after_seconds.
    """

    attempts: int = 5
    base_seconds: float = 1.0
    max_seconds: float = 20.0
    max_retry_after_seconds: float = 60.0
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    jitter: random.Random = field(default_factory=random.Random)

    def pause(self, attempt: int, retry_after: float | None) -> float:
        """Seconds to wait after failed attempt number `attempt`, from 1."""
        if retry_after is not None:
            return min(retry_after, self.max_retry_after_seconds)
        longest = min(self.base_seconds * 2 ** (attempt - 1), self.max_seconds)
        return self.jitter.uniform(longest / 2, longest)


class ChatModel:
    """One model at one place, called from one event loop.

    model: LiteLLM's name, `provider/name`. api_base: URL of an OpenAI-compatible or other server,
    or None for the provider's own. timeout: seconds for one request. At most `max_concurrency`
    requests are in flight, fewer after a 429. usage: what was spent before.
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
        self.model = model
        self.api_base = api_base
        self.usage = usage or Usage()
        self._check_provider()
        self._timeout = timeout
        self._retry = retry or RetryPolicy()
        self._in_flight = InFlight(max_concurrency)
        self._secrets = tuple(secrets)
        self._memory = memory

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

    async def ask(
        self, messages: Sequence[Message], tool: Tool | None = None, repetition: int = 0
    ) -> Answer:
        """The model's answer: the remembered one, or a new one after bounded retries.

        repetition: tells independent samples of one request apart.
        Raises RequestRejectedError or EmptyReplyError for this request alone; any other ModelError
        concerns every request.
        """
        if self._memory is None:
            return await self._ask_patiently(messages, tool)
        key = self._memory.key(self.model, self.api_base, messages, tool, repetition)
        outcome = await self._memory.recall(key)
        if outcome is None:
            outcome = await self._outcome(messages, tool)
            await self._memory.keep(key, outcome)
        else:
            remembered = self.usage.remembered + 1
            self.usage = self.usage.model_copy(update={"remembered": remembered})
        if isinstance(outcome, Answer):
            return outcome
        raise outcome

    async def set_aside(
        self, messages: Sequence[Message], tool: Tool | None = None, repetition: int = 0
    ) -> None:
        """The answer to this request could not be used; a resumed run asks for it again."""
        if self._memory is not None:
            key = self._memory.key(self.model, self.api_base, messages, tool, repetition)
            await self._memory.set_aside(key)

    async def _outcome(
        self, messages: Sequence[Message], tool: Tool | None
    ) -> Answer | RequestRejectedError | EmptyReplyError:
        try:
            return await self._ask_patiently(messages, tool)
        except (RequestRejectedError, EmptyReplyError) as refused:
            return refused

    async def _ask_patiently(self, messages: Sequence[Message], tool: Tool | None) -> Answer:
        async for attempt in AsyncRetrying(
            stop=stop_after_attempt(self._retry.attempts),
            retry=retry_if_exception_type(_RETRIED),
            wait=self._wait,
            sleep=self._retry.sleep,
            reraise=True,
        ):
            with attempt:
                async with self._in_flight.slot():
                    return await self._ask_once(messages, tool)
        raise AssertionError("the retries end with an answer or an error")

    def _wait(self, state: RetryCallState) -> float:
        error = state.outcome.exception() if state.outcome else None
        cause = error.__cause__ if error else None
        return self._retry.pause(state.attempt_number, retry_after_seconds(cause))

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
        self._count(response)
        return _answer(response, self.model, tool)

    def _place(self) -> dict[str, str]:
        if self.api_base is None:
            return {}
        place = {"api_base": self.api_base}
        if not litellm.validate_environment(self.model)["keys_in_environment"]:
            # The client library refuses to send a request without a key, wanted or not.
            place["api_key"] = _PLACEHOLDER_KEY
        return place

    def _count(self, response: Any) -> None:
        usage = getattr(response, "usage", None)
        cost = self._cost(response)
        known = self.usage.calls == 0 or self.usage.cost_usd is not None
        self.usage = Usage(
            calls=self.usage.calls + 1,
            remembered=self.usage.remembered,
            prompt_tokens=self.usage.prompt_tokens + _tokens(usage, "prompt_tokens"),
            completion_tokens=self.usage.completion_tokens + _tokens(usage, "completion_tokens"),
            cost_usd=(self.usage.cost_usd or 0.0) + cost if known and cost is not None else None,
        )

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
        return kind(f"{PROBLEMS[kind].format(where=where)}: {words}", self._fix(kind))

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
        raise EmptyReplyError(f"The model '{model}' answered without a choice.", _EMPTY_FIX)
    choice = choices[0]
    answer = Answer(
        text=_text(choice.message.content),
        finish_reason=getattr(choice, "finish_reason", None),
        # Nobody asked a task model for a call: one in its answer is no reply.
        tool_arguments=None if tool is None else _arguments(choice.message),
    )
    if answer.finish_reason == "content_filter":
        raise EmptyReplyError(f"The answer of the model '{model}' was filtered.", _EMPTY_FIX)
    if not answer.text.strip() and answer.tool_arguments is None:
        raise EmptyReplyError(
            f"The model '{model}' answered with an empty text (finish reason: "
            f"{answer.finish_reason or 'none'}).",
            _EMPTY_FIX,
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
