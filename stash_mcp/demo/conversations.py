"""The demonstration's conversations and what reviewers said of them.

32 support conversations of an invented shop, written for this project, with reviewers' ratings and
comments. Good and bad replies are of like length, so that length does not explain a rating.
"""

from importlib import resources


def conversations() -> bytes:
    """JSONL in the Stash Trace Format."""
    return _data("conversations.jsonl")


def annotations() -> bytes:
    """JSONL in the shape of an export of annotations."""
    return _data("annotations.jsonl")


def _data(name: str) -> bytes:
    return resources.files("stash_mcp.demo").joinpath("data", name).read_bytes()
