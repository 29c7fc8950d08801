"""A model that is asked: its remembered answers, its retries, its limit of requests at once.

What asks it (a library, a command) is a subclass's own.
"""

import asyncio
import random
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field

from tenacity import AsyncRetrying, RetryCallState, retry_if_exception_type, stop_after_attempt

from stash_mcp.errors import (
    EmptyReplyError,
    ModelRateLimitError,
    ModelServerError,
    ModelUnreachableError,
    RequestRejectedError,
)
from stash_mcp.models import Message, Usage
from stash_mcp.optimization.in_flight import InFlight
from stash_mcp.optimization.memory import Answer, Memory, Tool

EMPTY_FIX = "This conversation scores 0; if many do, take another model."
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


class Model(ABC):
    """One model at one place, called from one event loop.

    model: its name, with what leads to it before the first slash. api_base: the URL of its server,
    or None for the provider's own. At most `max_concurrency` requests are in flight, fewer after
    a 429. usage: what was spent before.
    """

    def __init__(
        self,
        model: str,
        api_base: str | None = None,
        *,
        max_concurrency: int = 8,
        retry: RetryPolicy | None = None,
        memory: Memory | None = None,
        usage: Usage | None = None,
    ) -> None:
        self.model = model
        self.api_base = api_base
        self.usage = usage or Usage()
        self._retry = retry or RetryPolicy()
        self._in_flight = InFlight(max_concurrency)
        self._memory = memory

    @property
    @abstractmethod
    def is_priced(self) -> bool:
        """Whether what a call costs is known."""

    @abstractmethod
    async def _ask_once(self, messages: Sequence[Message], tool: Tool | None) -> Answer:
        """One request. Raises RequestRejectedError or EmptyReplyError for this request alone; any
        other ModelError concerns every request. Counts what it spent, by `_count`.
        """

    def _retry_after(self, error: BaseException) -> float | None:
        """Seconds that the server asked to wait."""
        return None

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
        asked = None if error is None else self._retry_after(error)
        return self._retry.pause(state.attempt_number, asked)

    def _count(self, prompt_tokens: int, completion_tokens: int, cost_usd: float | None) -> None:
        known = self.usage.calls == 0 or self.usage.cost_usd is not None
        both = known and cost_usd is not None
        self.usage = Usage(
            calls=self.usage.calls + 1,
            remembered=self.usage.remembered,
            prompt_tokens=self.usage.prompt_tokens + prompt_tokens,
            completion_tokens=self.usage.completion_tokens + completion_tokens,
            cost_usd=(self.usage.cost_usd or 0.0) + (cost_usd or 0.0) if both else None,
        )
