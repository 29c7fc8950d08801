"""What an answer that is no success means: one table, and the words that it is told in."""

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from stash_mcp.errors import (
    StashAnswerError,
    StashError,
    StashFeatureError,
    StashKeyError,
    StashNotFoundError,
    StashNotReadyError,
    StashOutdatedError,
    StashRateLimitError,
    StashRejectedError,
    StashServerError,
    sentence,
)
from stash_mcp.stash.answers import ADDRESS_FIX, first_line
from stash_mcp.stash.connection import Answer
from stash_mcp.stash.wording import shown

FEATURE_OFF = "Reward models are not enabled for this account"
NOT_TRAINED = "Reward model has not finished training"
_SHOWN_FIELDS = 4


@dataclass(frozen=True)
class Refusal:
    """An answer that is no success. `detail` is Stash's own sentence, "" if it gave none; `fields`
    are what its validation complains of; `line` is the title or the first line of another text."""

    status: int
    detail: str
    fields: tuple["WrongField", ...]
    line: str


@dataclass(frozen=True)
class WrongField:
    place: tuple[str, ...]
    message: str

    def __str__(self) -> str:
        return f"{'.'.join(self.place) or 'request'}: {self.message}"


@dataclass(frozen=True)
class Row:
    """The first row whose status is in `statuses` and whose `when` holds decides."""

    statuses: Sequence[int]
    kind: type[StashError]
    problem: str
    fix: str
    when: Callable[[Refusal], bool] = lambda refusal: True
    passing: bool = False
    reached: bool = False


def _asks_for_a_name(refusal: Refusal) -> bool:
    return any(field.place[-1:] == ("skill_name",) for field in refusal.fields)


def _is_of_the_path(refusal: Refusal) -> bool:
    return any(field.place[:1] == ("path",) for field in refusal.fields)


def _is_foreign(refusal: Refusal) -> bool:
    return not refusal.detail and not refusal.fields


# {words} is what Stash said, or the first line of whatever answered instead.
REFUSALS: tuple[Row, ...] = (
    Row(
        (401,),
        StashKeyError,
        "Stash does not accept the key: {words}",
        "Make a new key in Stash's settings and put it into STASH_API_KEY.",
    ),
    Row(
        (403,),
        StashServerError,
        "A gateway before Stash refused the request with status {status}: {words}",
        "The key was not looked at. Try again later, or from another network.",
        when=_is_foreign,
    ),
    Row(
        (403,),
        StashKeyError,
        "The key may not do this: {words}",
        "A read-only key can look, but neither import, annotate, train nor start runs. Use a key "
        "that may write.",
    ),
    Row(
        (404,),
        StashFeatureError,
        "Reward models are not enabled for this account of Stash.",
        "Ask Stash to enable them, or check that the key is of the account that has them.",
        when=lambda refusal: refusal.detail.startswith(FEATURE_OFF),
    ),
    Row(
        (404,),
        StashAnswerError,
        "There is no such path at this address (404): {words}",
        ADDRESS_FIX,
        when=lambda refusal: _is_foreign(refusal) or refusal.detail == "Not Found",
    ),
    Row(
        (404,),
        StashNotFoundError,
        "Stash says: {words}",
        "It is unknown, deleted, or belongs to another account. List what there is, and check "
        "that the key is of the right account.",
    ),
    Row((409,), StashRejectedError, "Stash refused: {words}", "Look at its present state first."),
    Row(
        (413,),
        StashRejectedError,
        "That is too large for Stash in one request: {words}",
        "Send it in smaller parts.",
    ),
    Row(
        (422,),
        StashOutdatedError,
        "This server of Stash is older: it wants a skill's name and description with each run.",
        "Ask for its update; newer servers make both from the reviewers' comments.",
        when=_asks_for_a_name,
    ),
    Row(
        (422,),
        StashNotReadyError,
        "Stash says: {words}",
        "Wait until the training has succeeded, then start the run.",
        when=lambda refusal: refusal.detail.startswith(NOT_TRAINED),
    ),
    Row(
        (422,),
        StashNotFoundError,
        "Stash does not know such an id: {words}",
        "List what there is; ids are like 1b4e28ba-2fa1-11d2-883f-0016d3cca427.",
        when=_is_of_the_path,
    ),
    Row((422,), StashRejectedError, "Stash refused: {words}", "Correct that and send it again."),
    Row(
        (429,),
        StashRateLimitError,
        "Stash is asked too often.",
        "Wait{wait} and try again.",
        passing=True,
    ),
    Row(
        (500, 501),
        StashServerError,
        "Stash failed with status {status}: {words}",
        "Try again in a few minutes; if it stays, report it to Stash.",
        passing=True,
        reached=True,
    ),
    Row(
        range(500, 600),
        StashServerError,
        "Stash does not answer at the moment (status {status}): {words}",
        "Wait{wait} and try again.",
        passing=True,
        reached=True,
    ),
    Row((408, 425), StashServerError, "Stash took no request in time.", "Try again.", passing=True),
    Row(
        range(400, 500),
        StashRejectedError,
        "Stash refused with status {status}: {words}",
        ADDRESS_FIX,
    ),
    Row(
        range(1000),
        StashAnswerError,
        "An answer of status {status} came, which Stash does not give.",
        ADDRESS_FIX,
        reached=True,
    ),
)


def refused(answer: Answer, secrets: Sequence[str], now: datetime) -> StashError:
    """The error for an answer that is no success; `secrets` never appear in it."""
    refusal = _refusal(answer, secrets)
    row = next(row for row in REFUSALS if refusal.status in row.statuses and row.when(refusal))
    wait = retry_after_seconds(answer, now)
    words = {
        "status": str(refusal.status),
        "words": _words(refusal),
        "wait": "" if wait is None else f" {math.ceil(wait)} seconds",
    }
    return row.kind(
        row.problem.format(**words),
        row.fix.format(**words),
        passing=row.passing,
        reached=row.reached,
        retry_after=wait,
    )


def retry_after_seconds(answer: Answer, now: datetime) -> float | None:
    """Seconds that the server asked to wait: a number, or the time until a date (RFC 9110)."""
    value = answer.header("retry-after").strip()
    if not value:
        return None
    if value.isascii() and value.isdigit():
        return float(value[:9])
    date = http_date(value)
    return None if date is None else max(0.0, (date - now).total_seconds())


def http_date(value: str) -> datetime | None:
    try:
        date = parsedate_to_datetime(value)
    except (ValueError, OverflowError):
        return None
    return date if date.tzinfo else date.replace(tzinfo=UTC)


def _refusal(answer: Answer, secrets: Sequence[str]) -> Refusal:
    detail = _detail(answer.body)
    return Refusal(
        status=answer.status,
        detail=shown(detail, secrets) if isinstance(detail, str) else "",
        fields=_wrong_fields(detail, secrets),
        line=first_line(answer.body, secrets),
    )


def _words(refusal: Refusal) -> str:
    fields = "; ".join(str(field) for field in refusal.fields[:_SHOWN_FIELDS])
    return sentence(refusal.detail or fields or refusal.line)


def _detail(body: bytes) -> object:
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        return None
    return value.get("detail") if isinstance(value, dict) else None


def _wrong_fields(detail: object, secrets: Sequence[str]) -> tuple[WrongField, ...]:
    entries = detail if isinstance(detail, list) else []
    return tuple(_wrong_field(entry, secrets) for entry in entries if isinstance(entry, dict))


def _wrong_field(entry: dict[str, object], secrets: Sequence[str]) -> WrongField:
    loc = entry.get("loc")
    parts = loc if isinstance(loc, list) else []
    place = tuple(shown(str(part), secrets) for part in parts)
    return WrongField(place, shown(str(entry.get("msg", "not valid")), secrets))
