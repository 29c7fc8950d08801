"""The only place where a conversation becomes text.

The same text trains the reward model and is scored by it. System steps are left out on purpose:
the skill under test stands in the system message, and a reward model that saw it could be gamed.
"""

import json
from collections.abc import Sequence

from stash_mcp.models import Message, Step

_SEPARATOR = "\n\n"


def render_steps(steps: Sequence[Step]) -> str:
    """`<role>: <content>` of each non-system step, joined by one blank line.

    To render a step as the target of a rating, pass the steps up to and including it.
    """
    return _SEPARATOR.join(_render_step(step) for step in steps if step.role != "system")


def render_reply(messages: Sequence[Message], reply: str) -> str:
    """An example's messages followed by the assistant's reply, in the rendering of steps."""
    steps = [f"{message.role}: {message.content}" for message in messages]
    return _SEPARATOR.join([*steps, f"assistant: {reply}"])


def render_messages(messages: Sequence[Message]) -> str:
    return _SEPARATOR.join(f"{message.role}: {message.content}" for message in messages)


def _render_step(step: Step) -> str:
    if step.role != "assistant" or not step.tool_name:
        return f"{step.role}: {step.content}"
    # ASCII escapes and Python's default separators: checkpoints trained elsewhere read this form.
    call = f"assistant → {step.tool_name}({json.dumps(step.tool_input)})"
    return f"assistant: {step.content}\n{call}" if step.content else call
