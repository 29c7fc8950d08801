"""Answers that hold many things: each is read for itself, and what does not fit is told by name.

Covered: lists, pages, a conversation's annotations, lines of an export. Not covered: what makes a
whole answer unusable, which is an error (answers.py).
"""

import codecs
import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Generic, TypeVar

from pydantic import BaseModel, TypeAdapter, ValidationError

from stash_mcp.stash.shapes import Holding, Unread
from stash_mcp.stash.wording import misfit, shown

H = TypeVar("H", bound=Holding)
T = TypeVar("T", bound=BaseModel)

_LONGEST_NUMBER = 300
_IDS = ("id", "trace_id")


class NotJson(Exception):
    """It is no JSON, or not all of it."""


@dataclass(frozen=True)
class Rows(Generic[H, T]):
    """How an answer of the shape `whole` is read that has rows of the shape `row` in its field
    `rows`; a bare list is taken for that field."""

    whole: TypeAdapter[H]
    row: TypeAdapter[T]
    rows: str

    def read(self, body: bytes, secrets: Sequence[str]) -> H:
        """With the rows that fit, in their order, and the others in `unread`.

        NotJson; ValidationError where the answer does not fit beside its rows.
        """
        if body.lstrip()[:1] == b"[":
            body = b'{"%s":%s}' % (self.rows.encode(), body)
        try:
            found = self.whole.validate_json(body)
        except ValidationError:
            return self._sorted_out(body, secrets)
        return found.model_copy(update={"unread": ()})

    def _sorted_out(self, body: bytes, secrets: Sequence[str]) -> H:
        """Row by row, which takes several times as long."""
        value = loaded(body)
        given = value.get(self.rows) if isinstance(value, dict) else None
        if not isinstance(given, list):
            return self.whole.validate_json(body)
        sorted_out = _SortedOut()
        for row in given:
            sorted_out.take(row, self.row, secrets)
        fields = {**value, self.rows: sorted_out.sound, "unread": []}
        found = self.whole.validate_json(_dumped(fields))
        return found.model_copy(update={"unread": tuple(sorted_out.unread)})


@dataclass
class _SortedOut:
    sound: list[Any] = field(default_factory=list)
    unread: list[Unread] = field(default_factory=list)

    def take(self, row: object, shape: TypeAdapter[Any], secrets: Sequence[str]) -> None:
        try:
            shape.validate_json(_dumped(row))
        except ValidationError as error:
            self.unread.append(unread(row, misfit(error, secrets), secrets))
        else:
            self.sound.append(row)


def read_line(
    line: str, shape: TypeAdapter[T], odd: Callable[[Unread], None], secrets: Sequence[str]
) -> T | None:
    """The object of one line of an export; None where it was told to `odd` instead."""
    try:
        return shape.validate_json(line)
    except ValidationError as error:
        try:
            row = loaded(line.encode())
        except (NotJson, RecursionError):
            row = None
        odd(unread(row, misfit(error, secrets), secrets))
        return None


def unread(row: object, why: str, secrets: Sequence[str] = ()) -> Unread:
    """What can be told of a row that does not fit."""
    given = row if isinstance(row, dict) else {}
    ids = {name: given.get(name) for name in _IDS}
    told = {name: shown(id, secrets) for name, id in ids.items() if isinstance(id, str)}
    external = given.get("external_id")
    is_number = isinstance(ids["id"], int)
    return Unread(
        why=f"{why} (it is {ids['id']})" if is_number else why,
        external_id=external if isinstance(external, str) else None,
        created_at=_moment(given.get("created_at")),
        **told,
    )


def loaded(body: bytes) -> Any:
    """As JSON, with what cannot be kept left to the row that it is in; NotJson, RecursionError.

    Half a character, a number that is too long, a byte that is not UTF-8: no shape takes them.
    """
    text = body.removeprefix(codecs.BOM_UTF8).decode("utf-8", "surrogateescape")
    try:
        return json.loads(text, parse_int=_integer)
    except ValueError as error:
        raise NotJson from error


def _dumped(value: object) -> str:
    try:
        return json.dumps(value)
    except RecursionError:
        # No shape takes it either.
        return "null"


def _integer(digits: str) -> int | float:
    return int(digits) if len(digits) <= _LONGEST_NUMBER else math.inf


def _moment(value: object) -> datetime | None:
    try:
        moment = datetime.fromisoformat(value) if isinstance(value, str) else None
    except ValueError:
        return None
    return moment if moment is not None and moment.tzinfo is not None else None
