"""What an agent submits for a reflection, by the rules that a model's proposals keep."""

import json

from stash_mcp.models import Reflection, Submission
from stash_mcp.skills.proposal import END, START, Refusal, checked, problems_with_identity

MAX_BODY_BYTES = 10_000
"""UTF-8. Less than a skill may have: the next reflection shows it whole, within one answer."""


def body_limit(present: str) -> int:
    """Bytes that a body may have which comes after `present`; that one may have been longer."""
    return max(MAX_BODY_BYTES, _bytes(present))


def answer_of(submission: Submission, reflection: Reflection) -> str | Refusal:
    """The answer as it is kept: the body without blank lines around it, or the name and the
    description as JSON text; or why it cannot be used."""
    if reflection.kind == "identity":
        return _identity(submission)
    return _body(submission, reflection.present)


def _body(submission: Submission, present: str) -> str | Refusal:
    if submission.name is not None or submission.description is not None:
        return Refusal("It asks for a body, not for a name or a description.")
    body = (submission.body or "").replace("\r\n", "\n")
    size, limit = _bytes(body), body_limit(present)
    if size > limit:
        return Refusal(f"The body has {size:,} bytes; at most {limit:,} are allowed here.")
    if any(line.strip() in (START, END) for line in body.split("\n")):
        return Refusal(f"The body has a line {START} or {END} in it; submit what is between them.")
    return checked(body, present)


def _identity(submission: Submission) -> str | Refusal:
    if submission.body is not None:
        return Refusal("It asks for a name and a description, not for a body.")
    name, description = (submission.name or "").strip(), (submission.description or "").strip()
    problems = problems_with_identity(name, description)
    if problems:
        return Refusal(" ".join(problems))
    return json.dumps({"name": name, "description": description})


def _bytes(text: str) -> int:
    return len(text.encode("utf-8", errors="replace"))
