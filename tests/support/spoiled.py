"""A stand-in of Stash of which single objects are not what they should be."""

import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from stand_in_stash import StandIn

Row = dict[str, Any]
RAW = "<raw>"
"""A text that begins with it stands in the body as it is, without its quotes."""
HALF = "<half>"
"""Stands in the body as a byte that is not UTF-8."""


@contextmanager
def spoiled(stash: StandIn, path: str, change: Callable[[Any], Any]) -> Iterator[None]:
    """Whatever is got of paths that end with `path` is passed through `change`: a JSON value, or
    each line of an export."""
    given = stash.answer

    def answer(asked: Any) -> Any:
        reply, odd = given(asked)
        if asked.method == "GET" and asked.path.endswith(path) and reply.status == 200:
            reply = replace(reply, body=_changed(reply.body, reply.content_type, change))
        return reply, odd

    stash.answer = answer  # type: ignore[method-assign]
    try:
        yield
    finally:
        stash.answer = given  # type: ignore[method-assign]


def _changed(body: bytes, content_type: str, change: Callable[[Any], Any]) -> bytes:
    if "ndjson" not in content_type:
        return dumped(change(json.loads(body)))
    return b"".join(_line(line, change) + b"\n" for line in body.splitlines())


def _line(line: bytes, change: Callable[[Any], Any]) -> bytes:
    try:
        value = json.loads(line)
    except ValueError:
        # Spoiled already.
        return line
    return dumped(change(value))


def dumped(value: object) -> bytes:
    text = re.sub(f'"{RAW}([^"]*)"', r"\1", json.dumps(value))
    return text.encode().replace(HALF.encode(), b"\xff")


def one(id: str, change: Callable[[Row], object], key: str = "id") -> Callable[[Row], object]:
    """Of rows only the one with this id."""
    return lambda row: change(row) if isinstance(row, dict) and row.get(key) == id else row


def put(**fields: object) -> Callable[[Row], Row]:
    return lambda row: {**row, **fields}
