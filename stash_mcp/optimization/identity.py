"""The skill's name and description, fixed before its body is evolved.

A model is made to call a tool with the two. An answer that breaks a rule of SKILL.md is told which
and asked again, three answers at most. A server that does not know tools is asked for the same two
values as JSON text.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from pydantic import BaseModel, ConfigDict, ValidationError

from stash_mcp.errors import EmptyReplyError, ModelAnswerError, RequestRejectedError
from stash_mcp.models import Example, Message
from stash_mcp.optimization.memory import Answer, Tool
from stash_mcp.optimization.model import Model
from stash_mcp.optimization.shortening import shorten
from stash_mcp.rendering import render_messages
from stash_mcp.skills.proposal import problems_with_identity

MAX_ANSWERS = 3
MAX_EXAMPLES = 12
MAX_CONVERSATION_CHARACTERS = 1_500
MAX_COMMENT_CHARACTERS = 500

_TOOL = Tool(
    name="name_skill",
    description="Give the skill its name and its description.",
    parameters={
        "type": "object",
        "properties": {
            "name": {
                "type": "string",
                "description": "1 to 64 characters of a-z, 0-9 and single hyphens.",
            },
            "description": {
                "type": "string",
                "description": "One line, at most 1,024 characters: what the skill teaches and "
                "when an agent should load it.",
            },
        },
        "required": ["name", "description"],
        "additionalProperties": False,
    },
)

TASK = (
    "An AI agent will load a skill (a SKILL.md file) when the skill's description fits what it is "
    "asked to do. The skill will teach the agent what human reviewers asked for in their comments "
    "on the conversations below. Choose the skill's name and its description. The description "
    "says what the skill teaches and in which situations to load it, for all conversations of "
    "this kind and not for these few; it names no person and no single case."
)
_BY_TOOL = "Answer by calling the tool name_skill."
_BY_TEXT = (
    'Answer with one JSON object and nothing else: {"name": "...", "description": "..."}. The '
    "name is 1 to 64 characters of a-z, 0-9 and single hyphens; the description is one line of at "
    "most 1,024 characters."
)


@dataclass(frozen=True)
class Identity:
    name: str
    description: str


class Identifier(Protocol):
    async def identify(self, examples: Sequence[Example]) -> Identity:
        """Name and description for a skill about these conversations.

        Raises ModelAnswerError when no valid answer was given.
        """


class ModelIdentifier:
    """Asks the reflection model."""

    def __init__(self, model: Model) -> None:
        self._model = model

    async def identify(self, examples: Sequence[Example]) -> Identity:
        by_tool = True
        problems: tuple[str, ...] = ()
        history: list[Message] = []
        for _ in range(MAX_ANSWERS):
            messages = [_request(examples, by_tool=by_tool), *history]
            answer = await self._ask(messages, by_tool=by_tool)
            if answer is None or (by_tool and answer.tool_arguments is None):
                by_tool = False
                messages = [_request(examples, by_tool=False), *history]
                answer = await self._ask(messages, False)
            text = "" if answer is None else answer.tool_arguments or answer.text
            outcome = _read(text)
            if isinstance(outcome, Identity):
                return outcome
            problems = outcome
            await self._set_aside(messages, by_tool=by_tool)
            said = shorten(text, MAX_CONVERSATION_CHARACTERS) or "(nothing)"
            history = [
                Message(role="assistant", content=said),
                Message(role="user", content=_correction(problems, by_tool=by_tool)),
            ]
        raise ModelAnswerError(
            f"The reflection model '{self._model.model}' gave no valid name and description for "
            f"the skill in {MAX_ANSWERS} answers; the last one: {' '.join(problems)}",
            "Give skill_name and skill_description yourself, or take another reflection model.",
        )

    async def _set_aside(self, messages: Sequence[Message], *, by_tool: bool) -> None:
        await self._model.set_aside(messages, _TOOL if by_tool else None)

    async def _ask(self, messages: Sequence[Message], by_tool: bool) -> Answer | None:
        """None where the server rejects the request (without tools that is an error) or the
        answer is empty."""
        try:
            return await self._model.ask(messages, _TOOL if by_tool else None)
        except RequestRejectedError:
            if not by_tool:
                raise
            return None
        except EmptyReplyError:
            return None


def _request(examples: Sequence[Example], *, by_tool: bool) -> Message:
    texts = [shown(number, example) for number, example in enumerate(examples[:MAX_EXAMPLES], 1)]
    how = _BY_TOOL if by_tool else _BY_TEXT
    return Message(role="user", content="\n\n".join([TASK, *texts, how]))


def shown(number: int, example: Example) -> str:
    """The example as it stands in a prompt, under its number."""
    conversation = shorten(render_messages(example.messages), MAX_CONVERSATION_CHARACTERS)
    comments = [f"- {shorten(comment, MAX_COMMENT_CHARACTERS)}" for comment in example.feedback]
    return "\n".join(
        [
            f"## Conversation {number}",
            conversation,
            "",
            "Reviewers' comments on it:",
            *(comments or ["(none)"]),
        ]
    )


def _correction(problems: Sequence[str], *, by_tool: bool) -> str:
    listed = "\n".join(f"- {problem}" for problem in problems)
    return f"That cannot be used:\n{listed}\n{_BY_TOOL if by_tool else _BY_TEXT}"


class _Given(BaseModel):
    model_config = ConfigDict(extra="ignore", strict=True)

    name: str
    description: str


def _read(text: str) -> Identity | tuple[str, ...]:
    """The identity in the answer, or what is wrong with it."""
    try:
        given = _Given.model_validate(_json_object(text))
    except ValueError as error:
        return (_not_read(error),)
    name, description = given.name.strip(), given.description.strip()
    return problems_with_identity(name, description) or Identity(name, description)


def _json_object(text: str) -> object:
    """The first JSON object in `text`; models put words or a code fence around it."""
    start = text.find("{")
    if start < 0:
        raise ValueError("the answer is not a JSON object")
    value, _ = json.JSONDecoder().raw_decode(text, start)
    return value


def _not_read(error: ValueError) -> str:
    if isinstance(error, ValidationError):
        fields = ", ".join(str(detail["loc"][-1]) for detail in error.errors() if detail["loc"])
        return f"These fields are missing or not text: {fields or 'name, description'}."
    return f"The answer is not the JSON that was asked for ({error})."
