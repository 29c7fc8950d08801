"""What a client writes on one line: a message, or something that has to be refused in words.

The SDK drops in silence what it cannot read, takes a request whose id is of a wrong type for a
notification, and its client waits for ever.
"""

import json
import re
from dataclasses import dataclass
from typing import Any

from mcp.types import (
    INVALID_PARAMS,
    INVALID_REQUEST,
    PARSE_ERROR,
    ErrorData,
    JSONRPCError,
)
from pydantic_core import from_json

_BOM = "\ufeff"
_HALF_CHARACTER = re.compile("[\ud800-\udfff]")
_METHOD_CHARACTERS = 200
_MOST_REFUSALS = 100
_SENT_ALONE = "Send each message alone: batches are not taken."


@dataclass(frozen=True)
class Line:
    """message: to be handed on, as JSON; None where there is none. refusals: to be sent back."""

    message: str | None = None
    refusals: tuple[JSONRPCError, ...] = ()


def read_line(line: str) -> Line:
    """Halves of surrogate pairs, which a cut text leaves, become U+FFFD."""
    line = line.strip().removeprefix(_BOM)
    if not line:
        return Line()
    try:
        return _checked(line, from_json(line))
    except ValueError as error:
        return _mended(line, str(error))


def _mended(line: str, problem: str) -> Line:
    said = f"What was sent cannot be read as JSON: {problem}. Send one message a line, in UTF-8."
    value = None
    try:
        # This reader takes halves of surrogate pairs, and nests deeper.
        value = json.loads(line)
        text = _HALF_CHARACTER.sub("\ufffd", json.dumps(value, ensure_ascii=False))
        return _checked(text, from_json(text))
    except (ValueError, RecursionError):
        return Line(refusals=(_refusal(_id_of(value), PARSE_ERROR, said),))


def _checked(line: str, value: Any) -> Line:
    if isinstance(value, list):
        return Line(refusals=_batch(value))
    fault = _fault(value)
    if fault is None:
        return Line(message=line)
    return Line(refusals=tuple(row for row in (_answer(value, fault),) if row is not None))


def _fault(value: Any) -> tuple[int, str] | None:
    """Code and words of what is wrong with a message that is no list."""
    if not isinstance(value, dict):
        return INVALID_REQUEST, "A message is a JSON object."
    if "method" not in value and ("result" in value or "error" in value):
        return None
    if value.get("jsonrpc") != "2.0":
        return INVALID_REQUEST, 'A message has "jsonrpc": "2.0".'
    method = value.get("method")
    if not isinstance(method, str) or len(method) > _METHOD_CHARACTERS:
        return INVALID_REQUEST, "A request has a method, which is a short text."
    if "id" in value and _id_of(value) is None:
        return INVALID_REQUEST, "The id of a request is a text or a whole number."
    if not isinstance(value.get("params"), dict | None):
        return INVALID_PARAMS, "The params of a request are a JSON object."
    return None


def _answer(value: Any, fault: tuple[int, str]) -> JSONRPCError | None:
    """None for a notification, which is never answered."""
    code, said = fault
    if code == INVALID_PARAMS and "id" not in value:
        return None
    return _refusal(_id_of(value), code, said)


def _batch(values: list[Any]) -> tuple[JSONRPCError, ...]:
    """One refusal for each request in it, so that none is waited for; else one for all."""
    ids: list[int | str | None] = [
        found for value in values if (found := _id_of(value)) is not None
    ]
    return tuple(
        _refusal(found, INVALID_REQUEST, _SENT_ALONE) for found in (ids or [None])[:_MOST_REFUSALS]
    )


def _id_of(value: Any) -> int | str | None:
    found = value.get("id") if isinstance(value, dict) else None
    return found if isinstance(found, int | str) and not isinstance(found, bool) else None


def _refusal(request_id: int | str | None, code: int, said: str) -> JSONRPCError:
    return JSONRPCError(jsonrpc="2.0", id=request_id, error=ErrorData(code=code, message=said))
