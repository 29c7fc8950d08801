"""The only place where a conversation becomes text.

The same text trains the reward model and is scored by it. System steps are left out on purpose:
the skill under test stands in the system message, and a reward model that saw it could be gamed.
"""

import json
from collections.abc import Sequence

from stash_mcp.models import Example, InputFormat, Message, Step

SECTIONS_PREFIX = "STASH_ACTION_V3\n"
"""How a text of input version 3 begins; a JSON object of its sections follows."""

_SEPARATOR = "\n\n"
_GAP = "\n[earlier or intervening content omitted]\n"
# Characters that each section keeps, before it is shortened to its tokens.
_INSTRUCTIONS, _TURN, _HISTORY, _ACTION = 16_000, 8_000, 24_000, 12_000
# How programs begin what they put into a user's mouth.
_REPOSITORY_RULES = "# AGENTS.md instructions"
_ASSIGNMENT, _PAGE = "<teammate-message", "<external_codex_apps_"
_BY_PROGRAMS = (_ASSIGNMENT, "<heartbeat>", _PAGE)


def render_steps(steps: Sequence[Step]) -> str:
    """`<role>: <content>` of each non-system step, joined by one blank line.

    To render a step as the target of a rating, pass the steps up to and including it.
    """
    return _SEPARATOR.join(_render_step(step) for step in steps if step.role != "system")


def render_reply(messages: Sequence[Message], reply: str) -> str:
    """An example's messages followed by the assistant's reply, in the rendering of steps."""
    steps = [f"{message.role}: {message.content}" for message in messages]
    return _SEPARATOR.join([*steps, f"assistant: {reply}"])


def render_for(form: InputFormat, example: Example, reply: str) -> str:
    """What a checkpoint of this input format reads of an example's conversation with the reply.

    The skill under test is in none of them; version 3 has the conversation's own system message.
    """
    if form.version == 1:
        return render_reply(example.messages, reply)
    return render_sections(example.system, example.messages, reply, form.rubric)


def render_sections(
    system: str | None, messages: Sequence[Message], reply: str, rubric: Sequence[str]
) -> str:
    """Input version 3: the reply under judgement beside what it was asked for, in six sections."""
    rules = [m.content for m in messages if _is_rules(m)]
    said = [m for m in messages if not (m.role == "system" or _is_rules(m))]
    requests = _requests(said)
    system_texts = [m.content for m in messages if m.role == "system"]
    sections = {
        # The newest rules of a repository replace those before.
        "instructions": _cut(
            _SEPARATOR.join([*rules[-1:], system or "", *system_texts]), _INSTRUCTIONS
        ),
        "task": _cut(requests[0], _TURN) if requests else "",
        "request": _cut(requests[-1], _TURN) if requests else "",
        "history": _SEPARATOR.join(_latest(said)),
        "action": _cut(f"assistant: {reply}", _ACTION),
        "rubric": "\n".join(rubric),
    }
    return SECTIONS_PREFIX + json.dumps(sections)


def render_messages(messages: Sequence[Message]) -> str:
    return _SEPARATOR.join(f"{message.role}: {message.content}" for message in messages)


def _render_step(step: Step) -> str:
    if step.role != "assistant" or not step.tool_name:
        return f"{step.role}: {step.content}"
    # ASCII escapes and Python's default separators: checkpoints trained elsewhere read this form.
    call = f"assistant → {step.tool_name}({json.dumps(step.tool_input)})"
    return f"assistant: {step.content}\n{call}" if step.content else call


def _is_rules(message: Message) -> bool:
    return message.role == "user" and message.content.lstrip().startswith(_REPOSITORY_RULES)


def _requests(said: Sequence[Message]) -> list[str]:
    """What the person asked for, in order; else the assignment of an agent by another one."""
    turns = [m.content for m in said if m.role == "user"]
    by_person = [text for text in turns if not text.lstrip().startswith(_BY_PROGRAMS)]
    assigned = [text for text in turns if text.lstrip().startswith(_ASSIGNMENT)]
    others = [text for text in turns if not text.lstrip().startswith(_PAGE)]
    return by_person or assigned[:1] or others[:1]


def _latest(said: Sequence[Message]) -> list[str]:
    """As many of the last messages as fit, the first of them without its start."""
    kept: list[str] = []
    left = _HISTORY
    for message in reversed(said):
        if left <= 0:
            break
        text = f"{message.role}: {message.content}"
        kept.append(text if len(text) <= left else _GAP + text[-left:])
        left -= len(text)
    return kept[::-1]


def _cut(text: str, limit: int) -> str:
    """Without its middle where it is longer than `limit` characters."""
    if len(text) <= limit:
        return text
    half = limit // 2
    return text[:half] + _GAP + text[-half:]
