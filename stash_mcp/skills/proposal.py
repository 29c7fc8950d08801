"""What a proposed body, or a name and a description, must be, whoever wrote it.

A model's proposal meets these rules in the worker, an agent's where it is submitted.
"""

from dataclasses import dataclass

from stash_mcp.skills.document import (
    problems_with_body,
    problems_with_description,
    problems_with_name,
)
from stash_mcp.skills.scan import active_problems

START = "<<<SKILL BODY STARTS>>>"
END = "<<<SKILL BODY ENDS>>>"
"""Lines between which a body stands in a prompt and in a model's answer."""


@dataclass(frozen=True)
class Refusal:
    """Why a proposed body cannot be used, in words for whoever wrote it."""

    reason: str
    nothing_to_say: bool = False
    """No fault of the writer: this minibatch gave nothing to write from."""


def checked(body: str, present: str) -> str | Refusal:
    """`body` without blank lines around it if it keeps every rule and differs from `present`."""
    body = body.strip("\r\n").rstrip()
    problems = [*problems_with_body(body), *active_problems(body)]
    if problems:
        return Refusal(" ".join(problems))
    if body == present.strip():
        return Refusal("The body is the present one, unchanged.")
    return body


def problems_with_identity(name: str, description: str) -> tuple[str, ...]:
    """Every rule that the two break, a sentence each; empty if they can be used."""
    return (
        *problems_with_name(name),
        *problems_with_description(description),
        *active_problems(description),
    )
