"""The bytes of a JSON or JSONL file -> rows, or one error that says why they cannot be read.

Covered: size, encoding, line ends, JSON itself, and values that JSON can spell but that cannot be
kept. Not covered: what the rows mean (the adapters).
"""

import codecs
import io
import json
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from pydantic import JsonValue

from stash_mcp.errors import AnnotationError, InputError

MAX_PAYLOAD_BYTES = 256 * 1024 * 1024
MAX_LINE_BYTES = 64 * 1024 * 1024
"""Of one line, or of one JSON document that is spread over lines."""
MAX_VALUES = 10_000_000
"""Commas and brackets of a payload, which bound its JSON values: about 1 GB when all are tiny."""
MAX_DEPTH = 100

# Of a step's `tool_input` in a line: the line, its steps, the step.
_LEVELS_AROUND = 3
_SEPARATORS = (b",", b"[", b"{")
# How the first line of a document that is spread over several lines ends.
_CONTINUES = (b"{", b"[", b",", b":")
_UTF16_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
# NUL, and halves of a surrogate pair without the other half. An escaped backslash before the `u`
# matches too, so a match is only a reason to look closer.
_SUSPECT_ESCAPE = re.compile(
    r"\\u0000"
    r"|\\u[dD][89abAB]..(?!\\u[dD][c-fC-F])"
    r"|(?<!\\u[dD][89abAB]..)\\u[dD][c-fC-F]"
)
UNKEPT_CHARACTER = re.compile("[\0\ud800-\udfff]")
"""SQLite's text functions stop at NUL, and half a surrogate pair has no UTF-8."""


@dataclass(frozen=True)
class Row:
    """One JSON value and the number, from 1, of the line that it starts on."""

    line: int
    value: JsonValue


@dataclass(frozen=True)
class _UnkeptNumber:
    """Stands in a parsed value for a number that cannot be kept."""

    reason: str


def read_rows(data: bytes, error: type[InputError]) -> tuple[Row, ...]:
    """The JSON values of `data`: one a line, or a single document that is spread over lines.

    Lines end at LF alone (a message may contain U+2028), with or without a CR before it; blank
    ones are skipped; a UTF-8 byte order mark is dropped. Everything else raises `error`.
    """
    _check_payload(data, error)
    body = data.removeprefix(codecs.BOM_UTF8)
    lines = [(number, line) for number, line in enumerate(io.BytesIO(body), 1) if line.strip()]
    if not lines:
        raise error("The file is empty.", "Export it again, or give another one.")
    if lines[0][1].rstrip().endswith(_CONTINUES):
        return (_Reader(1, is_last=True, error=error).row(body),)
    last = lines[-1][0]
    return tuple(_Reader(number, number == last, error).row(line) for number, line in lines)


def _check_payload(data: bytes, error: type[InputError]) -> None:
    if data.startswith(_UTF16_MARKS):
        raise error(
            "The file is UTF-16, not UTF-8.",
            "Save it as UTF-8 and import it again; nothing was stored.",
        )
    if len(data) > MAX_PAYLOAD_BYTES:
        raise error(
            f"The file has {len(data):,} bytes; at most {MAX_PAYLOAD_BYTES:,} are read at once.",
            "Split it between lines into smaller files and import each; nothing was stored.",
        )
    if sum(data.count(separator) for separator in _SEPARATORS) > MAX_VALUES:
        raise error(
            f"The file has more than {MAX_VALUES:,} commas and brackets.",
            "Split it between lines into smaller files and import each; nothing was stored.",
        )


@dataclass(frozen=True)
class _Reader:
    """Reads one line; `is_last`: nothing follows it, so it may have been cut off."""

    line: int
    is_last: bool
    error: type[InputError]

    @property
    def _noun(self) -> str:
        return "annotation" if issubclass(self.error, AnnotationError) else "conversation"

    def row(self, raw: bytes) -> Row:
        if len(raw) > MAX_LINE_BYTES:
            raise self._refused(
                f"is {len(raw):,} bytes long; at most {MAX_LINE_BYTES:,} are read",
                f"Shorten that {self._noun}, or leave it out.",
            )
        text = self._decoded(raw)
        value = self._parsed(text)
        if _is_too_deep(value):
            raise self._too_deep()
        return Row(self.line, value)

    def _decoded(self, raw: bytes) -> str:
        try:
            return raw.decode("utf-8")
        except UnicodeDecodeError as problem:
            if self.is_last and problem.reason == "unexpected end of data":
                raise self._cut_off("it ends inside a character") from problem
            line = self.line + raw.count(b"\n", 0, problem.start)
            byte = problem.start - raw.rfind(b"\n", 0, problem.start)
            raise self._refused(
                f"is not UTF-8: byte {byte} is 0x{raw[problem.start]:02x}",
                "Save the file as UTF-8.",
                line=line,
            ) from problem

    def _parsed(self, text: str) -> JsonValue:
        try:
            value, unkept = _load(text)
        except RecursionError as problem:
            raise self._too_deep() from problem
        except json.JSONDecodeError as problem:
            raise self._not_json(problem) from problem
        if unkept or _SUSPECT_ESCAPE.search(text):
            self._check_kept(value)
        return value

    def _check_kept(self, value: JsonValue) -> None:
        for path, reason in _unkept_values(value):
            raise self._refused(f"has {reason} in `{path}`", "Remove or replace it.")

    def _not_json(self, problem: json.JSONDecodeError) -> InputError:
        at_end = problem.pos >= len(problem.doc.rstrip())
        if self.is_last and (at_end or problem.msg.startswith("Unterminated string")):
            return self._cut_off("the JSON ends in the middle")
        what = problem.msg.lower().removesuffix(" at")
        return self._refused(
            f"is not JSON: {what} at column {problem.colno}",
            f"Each {self._noun} must be one JSON object on one line.",
            line=self.line + problem.lineno - 1,
        )

    def _cut_off(self, how: str) -> InputError:
        return self._refused(
            f"is cut off: {how}", "Export or copy the file again, its end is missing."
        )

    def _too_deep(self) -> InputError:
        return self._refused(
            f"nests objects or arrays more than {MAX_DEPTH} levels deep",
            "Flatten that value, or store it as a string.",
        )

    def _refused(self, problem: str, fix: str, line: int | None = None) -> InputError:
        return self.error(f"Line {line or self.line} {problem}.", f"{fix} Nothing was stored.")


def parse_json(text: str) -> JsonValue:
    """A JSON value inside a string of the payload; ValueError where it could not be kept.

    It is allowed fewer levels than a line, so that a line can hold it.
    """
    try:
        value, unkept = _load(text)
    except RecursionError as problem:
        raise ValueError("nested too deeply") from problem
    if (
        unkept
        or _is_too_deep(value, MAX_DEPTH - _LEVELS_AROUND)
        or any(True for _ in _unkept_values(value))
    ):
        raise ValueError("holds a value that cannot be kept")
    return value


def _load(text: str) -> tuple[JsonValue, bool]:
    """The JSON value, and whether some of its numbers cannot be kept."""
    unkept: list[_UnkeptNumber] = []

    def constant(name: str) -> _UnkeptNumber:
        unkept.append(_UnkeptNumber(f"the number {name}"))
        return unkept[-1]

    def finite(digits: str) -> float | _UnkeptNumber:
        number = float(digits)
        return number if math.isfinite(number) else constant(f"{digits:.20} (too large)")

    def integer(digits: str) -> int | _UnkeptNumber:
        try:
            return int(digits)
        except ValueError:
            return constant(f"{digits:.20}… ({len(digits):,} digits)")

    try:
        return json.loads(text, parse_constant=constant, parse_float=finite), bool(unkept)
    except json.JSONDecodeError:
        raise
    except ValueError:
        # An integer with more digits than Python converts. Rare, so only now each is looked at.
        return (
            json.loads(text, parse_constant=constant, parse_float=finite, parse_int=integer),
            True,
        )


def _is_too_deep(value: JsonValue, limit: int = MAX_DEPTH) -> bool:
    level = [value] if isinstance(value, dict | list) else []
    for _ in range(limit):
        level = [
            child
            for node in level
            for child in (node.values() if isinstance(node, dict) else node)
            if isinstance(child, dict | list)
        ]
        if not level:
            return False
    return True


def _unkept_values(value: Any) -> Iterator[tuple[str, str]]:
    """Path and reason of each string or number that cannot be kept."""
    pending: list[tuple[str, Any]] = [("", value)]
    while pending:
        path, node = pending.pop()
        if isinstance(node, _UnkeptNumber):
            yield path, node.reason
        elif isinstance(node, str) and (found := UNKEPT_CHARACTER.search(node)):
            yield path, _character(found.group())
        elif isinstance(node, list):
            pending += [(f"{path}[{index}]", child) for index, child in enumerate(node)][::-1]
        elif isinstance(node, dict):
            for key in node:
                if found := UNKEPT_CHARACTER.search(key):
                    yield f"{path} (a key)", _character(found.group())
            pending += [(f"{path}.{key}".lstrip("."), node[key]) for key in reversed(node)]


def _character(character: str) -> str:
    if character == "\0":
        return "a NUL character"
    return f"half of a surrogate pair (U+{ord(character):04X})"
