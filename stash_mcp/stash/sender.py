"""Requests repeated where that is safe, with pauses that grow, and never past one total time."""

import contextlib
import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Generic, TypeVar

from pydantic import TypeAdapter

from stash_mcp.errors import StashError, StashTimeoutError, StashUncertainError
from stash_mcp.stash.answers import read, read_rows
from stash_mcp.stash.connection import Answer, Call, Connection, Stream
from stash_mcp.stash.http_client import Limits
from stash_mcp.stash.refusals import http_date, refused
from stash_mcp.stash.rows import Rows
from stash_mcp.stash.shapes import Holding, Unread

T = TypeVar("T")
L = TypeVar("L", bound=Holding)

Sleep = Callable[[float], None]
Uniform = Callable[[float, float], float]

_LOOKS = 3
_POSTS = 2
# A Date has whole seconds, and the database's clock need not be the gateway's.
_SLACK = timedelta(seconds=5)


@dataclass(frozen=True)
class Look(Generic[L, T]):
    """How to see whether a lost request took effect: `pick` finds it among what `call` lists, made
    at or after a time of the server's clock. `noun` names it, in the plural.

    What is listed and cannot be read may be it too, unless it is told to be older.
    """

    call: Call
    rows: Rows[L, Any]
    pick: Callable[[L, datetime], T | None]
    noun: str


class Sender:
    def __init__(self, connection: Connection, sleep: Sleep, uniform: Uniform) -> None:
        self.connection = connection
        self.sleep = sleep
        self._uniform = uniform

    def ask(self, call: Call, take: Callable[[Answer], T], *, repeatable: bool) -> T:
        """What `take` makes of the answer. Without `repeatable` a request is only sent again where
        it certainly had no effect."""
        clock = self.connection.clock
        deadline = clock() + self.connection.limits.total_seconds
        for attempt in itertools.count(1):
            try:
                return take(self._success(call, deadline - clock()))
            except StashError as error:
                pause = self.pause_after(attempt, error)
                if pause is None or clock() + pause >= deadline:
                    raise
                if error.reached and not repeatable:
                    raise
            self.sleep(pause)
        raise AssertionError("unreachable")

    def post_once(self, call: Call, shape: TypeAdapter[T], look: Look[L, T]) -> T:
        """The object that a POST makes, made once even where an answer is lost.

        A lost request is looked for; one that may still be under way is never sent again.
        StashUncertainError if it stays open whether it took effect.
        """
        for attempt in itertools.count(1):
            begun = self.connection.clock()
            try:
                return self.ask(call, self.reader(shape), repeatable=False)
            except StashError as error:
                if not error.reached:
                    raise
                lost = error
            found = self._found(look, begun, lost)
            if found is not None:
                return found
            if isinstance(lost, StashTimeoutError) or attempt == _POSTS:
                raise _uncertain(lost, look.noun, "It was not there when looked for afterwards.")
        raise AssertionError("unreachable")

    @contextlib.contextmanager
    def stream(self, call: Call, *, unpacked: bool = True) -> Iterator[Stream]:
        """A successful answer as it comes; not repeated."""
        with self.connection.stream(call, unpacked=unpacked) as stream:
            if not 200 <= stream.status < 300:
                raise self.refused(Answer(stream.status, stream.headers, stream.refusal))
            yield stream

    @contextlib.contextmanager
    def stream_begun(self, call: Call) -> Iterator[Stream]:
        """Like `stream`, and asked for again, where that passes, until the answer has begun. What
        breaks off later is not repeated, as its reader has had a part of it, and is marked `begun`.
        """
        with contextlib.ExitStack() as opened:
            stream = self._begun(opened, call)
            try:
                yield stream
            except StashError as error:
                error.begun = True
                raise

    def _begun(self, opened: contextlib.ExitStack, call: Call) -> Stream:
        clock = self.connection.clock
        deadline = clock() + self.connection.limits.total_seconds
        for attempt in itertools.count(1):
            try:
                return opened.enter_context(self.stream(call))
            except StashError as error:
                pause = self.pause_after(attempt, error)
                if pause is None or clock() + pause >= deadline:
                    raise
            self.sleep(pause)
        raise AssertionError("unreachable")

    def reader(self, shape: TypeAdapter[T]) -> Callable[[Answer], T]:
        return lambda answer: read(answer, shape, self.connection.secrets)

    def rows_reader(self, rows: Rows[L, Any]) -> Callable[[Answer], L]:
        return lambda answer: read_rows(answer, rows, self.connection.secrets)

    def refused(self, answer: Answer) -> StashError:
        return refused(answer, self.connection.secrets, datetime.now(UTC))

    def pause_after(self, attempt: int, error: StashError) -> float | None:
        return pause_after(attempt, error, self.connection.limits, self._uniform)

    def _success(self, call: Call, seconds: float) -> Answer:
        answer = self.connection.fetch(call, seconds)
        if 200 <= answer.status < 300:
            return answer
        raise self.refused(answer)

    def _found(self, look: Look[L, T], begun: float, lost: StashError) -> T | None:
        """StashUncertainError where what is listed cannot be read and may be it."""
        doubtful: Unread | None = None
        for pause in _pauses(self.connection.limits, _LOOKS):
            self.sleep(pause)
            try:
                listed, now = self.ask(look.call, self._dated(look.rows), repeatable=True)
            except StashError as error:
                if not lost.passing:
                    raise lost from error
                raise _uncertain(lost, look.noun, error.problem) from error
            since = now - timedelta(seconds=self.connection.clock() - begun) - _SLACK
            found = look.pick(listed, since)
            if found is not None:
                return found
            doubtful = doubtful or _doubtful(listed, since)
        if doubtful is not None:
            what = f"One of the {look.noun} may be it, and cannot be read ({doubtful.named})."
            raise _uncertain(lost, look.noun, what)
        return None

    def _dated(self, rows: Rows[L, Any]) -> Callable[[Answer], tuple[L, datetime]]:
        """Times are compared by the server's own clock, where it tells it."""

        def take(answer: Answer) -> tuple[L, datetime]:
            now = http_date(answer.header("date")) or datetime.now(UTC)
            return read_rows(answer, rows, self.connection.secrets), now

        return take


def _doubtful(listed: Holding, since: datetime) -> Unread | None:
    return next(
        (row for row in listed.unread if row.created_at is None or row.created_at >= since), None
    )


def pause_after(attempt: int, error: StashError, limits: Limits, uniform: Uniform) -> float | None:
    """Seconds until the next attempt after number `attempt`, from 1; None if there is none.

    What the server asks for is kept to, if it is not too long; else the pauses double, each with
    up to half of it at random so that many clients do not come back together.
    """
    if not error.passing or attempt >= limits.attempts:
        return None
    if error.retry_after is not None:
        return error.retry_after if error.retry_after <= limits.longest_pause_seconds else None
    longest = min(limits.first_pause_seconds * 2 ** (attempt - 1), limits.longest_pause_seconds)
    return uniform(longest / 2, longest)


def _pauses(limits: Limits, count: int) -> Iterator[float]:
    return (limits.first_pause_seconds * 2**number for number in range(count))


def _uncertain(lost: StashError, noun: str, what: str) -> StashUncertainError:
    return StashUncertainError(
        f"{lost.problem} {what}",
        f"It may have taken effect all the same: list the {noun} before you do it again.",
        reached=True,
    )
