"""What two sides are compared by, and which of them has changed."""

import hashlib
import json
from typing import Any, Literal

from stash_mcp.models import Annotation, Trace

Verdict = Literal["new", "same", "link", "theirs", "ours", "both"]
"""same: nothing changed. link: both hold the same, which was not noted yet. theirs, ours: changed
at Stash, or here. both: changed on both sides, or different and never synced."""


def trace_hash(trace: Trace) -> str:
    """Of steps and metadata. Not of the title: Stash makes one up where there is none."""
    steps = [step.model_dump(exclude_defaults=True) for step in trace.steps]
    return _hash([trace.metadata, steps])


def note_hash(annotation: Annotation) -> str:
    """Of what it says, about what, and whether it is flagged. Stash's author is the key's owner,
    and the time is that of its arrival there: neither is compared."""
    flag = [annotation.label_error, annotation.label_error_note]
    return _hash([*_said(annotation), *flag])


def said_alike(one: Annotation, other: Annotation) -> bool:
    """Whether they say the same about the same, flagged or not."""
    return _said(one) == _said(other)


def compared(remote: str, synced: str | None, local: str | None) -> Verdict:
    """By the hashes of both sides, and that of when they last agreed; None where there is none."""
    if local is None:
        return "new"
    if local == remote:
        return "same" if synced == remote else "link"
    if synced is None:
        return "both"
    if local == synced:
        return "theirs"
    return "ours" if remote == synced else "both"


def _said(annotation: Annotation) -> list[object]:
    quote = None if annotation.quote is None else annotation.quote.model_dump()
    return [annotation.step_index, annotation.rating, annotation.comment, quote]


def _hash(value: object) -> str:
    text = json.dumps(_plain(value), sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def _plain(value: Any) -> Any:
    """Whole numbers alike: a database on the way may write 1e22 as an integer."""
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value
