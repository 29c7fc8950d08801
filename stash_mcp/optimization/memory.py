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
    """`only_for`: a run's id makes its answers its own, shared with no other run; None shares."""

    def __init__(self, store: CallStore, only_for: str | None = None) -> None:
        self._store = store
        self._only_for = only_for

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
        value = await asyncio.to_thread(self._store.get, key)
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
        await asyncio.to_thread(self._store.put, key, json.dumps(fields))
