"""From a minibatch and what reviewers said of it to a new body, by a reflection model.

The prompt is ours, not GEPA's template: GEPA substitutes its markers inside bodies, and its
extraction cuts Markdown at code fences. The body is asked for between two marker lines and taken
exactly as it stands there. What cannot be used is refused with the reason and asked for once more.
"""

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from stash_mcp.errors import EmptyReplyError
from stash_mcp.models import Message
from stash_mcp.optimization.identity import Identity
from stash_mcp.optimization.memory import Answer
from stash_mcp.optimization.model import Model
from stash_mcp.optimization.shortening import shorten
from stash_mcp.skills.document import MAX_BODY_CHARACTERS, MAX_BODY_LINES
from stash_mcp.skills.proposal import END as END
from stash_mcp.skills.proposal import START as START
from stash_mcp.skills.proposal import Refusal, checked

MAX_ATTEMPTS = 2

MAX_PROMPT_CHARACTERS = 80_000
"""Of the reflection prompt in all: about 20,000 tokens."""
_MAX_REPLY_CHARACTERS = 4_000
_MAX_COMMENTS_CHARACTERS = 6_000
_MAX_ERROR_CHARACTERS = 600
_FRAME_CHARACTERS = 6_000

_TASK = """\
You improve the body of a skill, a SKILL.md file that an AI agent loads and follows. People \
reviewed conversations of that agent. A reward model trained on their ratings scores each reply, \
from 0 to 1, higher is better. Write a better body: one that makes the agent reply the way the \
reviewers asked for.

The skill's name and description are fixed, and stand in the file's frontmatter already:
name: {name}
description: {description}

The present body, {characters} characters long:
{start}
{body}
{end}

Below are conversations that the agent answered with this body loaded: the conversation, the \
agent's reply, its score, and the comments that reviewers left on the original conversation, \
which may be about other replies than the one shown."""

_RULES = """\
Write the new body.
- Turn the comments into instructions that hold for every conversation of this kind: what to \
always do, what never to do, the steps and the facts that are needed. Do not copy these \
conversations, names or numbers of single cases into it.
- Keep what already works in the present body.
- Use Markdown. At most {lines} lines and {limit} characters. No YAML frontmatter, no name, no \
description.
- It is a text to read: no commands that run on load (an exclamation mark before a backtick), no \
word that begins with @ unless a backtick stands directly before it, no $ARGUMENTS or ${{...}} \
placeholders, no HTML comments, no keys or passwords."""

_ANSWER = f"""\
Answer with the whole new body between these two lines, each on a line of its own, and nothing \
after them:
{START}
{END}"""


@dataclass(frozen=True)
class ReflectionRecord:
    """One example of the minibatch, as reflection sees it. `score` is 0 to 1."""

    conversation: str
    reply: str
    score: float
    error: str | None
    comments: tuple[str, ...]


class Reflector(Protocol):
    calls: int
    """How many proposals were asked for."""

    async def propose(self, body: str, records: Sequence[ReflectionRecord]) -> str | Refusal:
        """A new body that keeps every rule, or why there is none. Raises ModelError."""


class ModelReflector:
    def __init__(self, model: Model, identity: Identity) -> None:
        self.calls = 0
        self._model = model
        self._identity = identity
        self._asked: Counter[str] = Counter()

    async def propose(self, body: str, records: Sequence[ReflectionRecord]) -> str | Refusal:
        asked = prompt(self._identity, body, records)
        # A second proposal from the very same prompt is meant to be another one.
        repetition = self._asked[asked]
        self._asked[asked] += 1
        messages = [Message(role="user", content=asked)]
        outcome: str | Refusal = Refusal("nothing was asked")
        for _ in range(MAX_ATTEMPTS):
            self.calls += 1
            answer = await self._answer(messages, repetition)
            outcome = body_in(answer, body)
            if isinstance(outcome, str):
                return outcome
            await self._model.set_aside(messages, repetition=repetition)
            messages = [*messages[:1], *_corrected(answer, outcome)]
        return outcome

    async def _answer(self, messages: Sequence[Message], repetition: int) -> Answer:
        try:
            return await self._model.ask(messages, repetition=repetition)
        except EmptyReplyError:
            return Answer(text="", finish_reason=None)


def prompt(identity: Identity, body: str, records: Sequence[ReflectionRecord]) -> str:
    """The whole reflection prompt, at most MAX_PROMPT_CHARACTERS long."""
    task = task_text(identity, body)
    rules = f"{rules_text(MAX_BODY_CHARACTERS)}\n\n{_ANSWER}"
    room = MAX_PROMPT_CHARACTERS - len(task) - len(rules) - _FRAME_CHARACTERS
    return "\n\n".join([task, *record_texts(records, room), rules])


def task_text(identity: Identity, body: str) -> str:
    """What is asked, with the present body between the marker lines."""
    return _TASK.format(
        name=identity.name,
        description=identity.description,
        characters=len(body),
        body=body,
        start=START,
        end=END,
    )


def record_texts(records: Sequence[ReflectionRecord], room: int) -> list[str]:
    """A text for each record; all together about `room` characters, and their headings."""
    share = max(0, room) // len(records)
    return [_record(number, record, share) for number, record in enumerate(records, 1)]


def rules_text(limit: int) -> str:
    """What a new body keeps to; limit: its most characters."""
    return _RULES.format(lines=MAX_BODY_LINES, limit=limit)


def _record(number: int, record: ReflectionRecord, room: int) -> str:
    """room: characters for all of it; the conversation takes what the rest leaves."""
    reply = shorten(record.reply, min(_MAX_REPLY_CHARACTERS, room // 4)) or "(no reply)"
    comments = shorten(
        "\n".join(f"- {comment}" for comment in record.comments),
        min(_MAX_COMMENTS_CHARACTERS, room // 4),
    )
    conversation = shorten(record.conversation, max(0, room - len(reply) - len(comments)))
    lines = [
        f"## Conversation {number}",
        conversation,
        "",
        "### The agent's reply",
        reply,
        "",
        f"### Score: {record.score:.3f}",
    ]
    if record.error is not None:
        lines += ["", "### The request failed", shorten(record.error, _MAX_ERROR_CHARACTERS)]
    return "\n".join([*lines, "", "### Reviewers' comments", comments or "(none)"])


def body_in(answer: Answer, present: str) -> str | Refusal:
    """The body between the markers of `answer`, exactly, or why it cannot be used."""
    if answer.truncated:
        return Refusal("The answer was cut off at the model's output limit; write a shorter body.")
    if not answer.text.strip():
        return Refusal("The answer was empty.")
    lines = answer.text.split("\n")
    starts = [index for index, line in enumerate(lines) if line.strip() == START]
    ends = [index for index, line in enumerate(lines) if line.strip() == END]
    if len(starts) != 1 or len(ends) != 1 or ends[0] < starts[0]:
        return Refusal(
            f"The body must stand between one line {START} and one line {END}; "
            f"the answer has {len(starts)} and {len(ends)} of them."
        )
    return checked("\n".join(lines[starts[0] + 1 : ends[0]]), present)


def _corrected(answer: Answer, refusal: Refusal) -> list[Message]:
    said = shorten(answer.text, 2 * MAX_BODY_CHARACTERS) or json.dumps("")
    return [
        Message(role="assistant", content=said),
        Message(
            role="user",
            content=f"That cannot be used: {refusal.reason} Answer again with the whole body "
            f"between the lines {START} and {END}.",
        ),
    ]
