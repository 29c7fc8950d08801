"""What a model answered before, so that it is not asked, and paid, again."""

import asyncio
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from pydantic import JsonValue

from stash_mcp.errors import EmptyReplyError, RequestRejectedError
from stash_mcp.models import Message
from stash_mcp.storage.calls import CallStore, call_key


@dataclass(frozen=True)
class Tool:
    """A function that the model is made to call; `parameters` is a JSON schema."""

    name: str
    description: str
    parameters: dict[str, JsonValue]


@dataclass(frozen=True)
class Answer:
    """What a model said. `text` may be empty when `tool_arguments`, JSON text, is given."""

    text: str
    finish_reason: str | None
    tool_arguments: str | None = None

    @property
    def truncated(self) -> bool:
        return self.finish_reason == "length"


Outcome = Answer | RequestRejectedError | EmptyReplyError
"""A rejection is an answer too: asking again would be rejected again."""

_REFUSALS = {kind.code: kind for kind in (RequestRejectedError, EmptyReplyError)}


class Memory:
    """`only_for`: a run's id makes its answers its own, shared with no other run; None shares.

    `go`: names one go of one run, which a kill does not end and a resume does. What could not be
    used (a rejection, an answer that broke the rules) is remembered within it alone: whoever mends
    the cause and resumes wants it asked again.
    """

    def __init__(self, store: CallStore, only_for: str | None = None, go: str = "") -> None:
        self._store = store
        self._only_for = only_for
        self._go = go

    def key(
        self,
        model: str,
        api_base: str | None,
        messages: Sequence[Message],
        tool: Tool | None,
        repetition: int,
    ) -> str:
        return call_key(
            kind="chat",
            model=model,
            api_base=api_base,
            messages=[message.model_dump() for message in messages],
            tool=None if tool is None else asdict(tool),
            repetition=repetition,
            only_for=self._only_for,
        )

    async def recall(self, key: str) -> Outcome | None:
        found = await asyncio.to_thread(self._store.get_many, [key, self._unusable(key)])
        value = found.get(self._unusable(key), found.get(key))
        if value is None:
            return None
        fields = json.loads(value)
        if "refused" in fields:
            return _REFUSALS[fields["refused"]](fields["problem"], fields["fix"])
        return Answer(**fields)

    async def keep(self, key: str, outcome: Outcome) -> None:
        if isinstance(outcome, Answer):
            fields = asdict(outcome)
        else:
            fields = {"refused": outcome.code, "problem": outcome.problem, "fix": outcome.fix}
            key = self._unusable(key)
        await asyncio.to_thread(self._store.put, key, json.dumps(fields))

    async def set_aside(self, key: str) -> None:
        """The kept answer could not be used: remember it within this go alone."""
        await asyncio.to_thread(self._store.move, key, self._unusable(key))

    def _unusable(self, key: str) -> str:
        return call_key(kind="unusable", go=self._go, key=key)
