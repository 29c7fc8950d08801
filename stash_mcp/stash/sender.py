"""Requests repeated where that is safe, with pauses that grow, and never past one total time."""

import contextlib
import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Generic, TypeVar

from pydantic import TypeAdapter

from stash_mcp.errors import StashError, StashTimeoutError, StashUncertainError
from stash_mcp.stash.answers import read
from stash_mcp.stash.connection import Answer, Call, Connection, Stream
from stash_mcp.stash.http_client import Limits
from stash_mcp.stash.refusals import http_date, refused

T = TypeVar("T")
L = TypeVar("L")

Sleep = Callable[[float], None]
Uniform = Callable[[float, float], float]

_LOOKS = 3
_POSTS = 2
# A Date has whole seconds, and the database's clock need not be the gateway's.
_SLACK = timedelta(seconds=5)


@dataclass(frozen=True)
class Look(Generic[L, T]):
    """How to see whether a lost request took effect: `pick` finds it among what `call` lists, made
    at or after a time of the server's clock. `noun` names it, in the plural."""

    call: Call
    shape: TypeAdapter[L]
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

    def reader(self, shape: TypeAdapter[T]) -> Callable[[Answer], T]:
        return lambda answer: read(answer, shape, self.connection.secrets)

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
        for pause in _pauses(self.connection.limits, _LOOKS):
            self.sleep(pause)
            try:
                listed, now = self.ask(look.call, self._dated(look.shape), repeatable=True)
            except StashError as error:
                if not lost.passing:
                    raise lost from error
                raise _uncertain(lost, look.noun, error.problem) from error
            since = now - timedelta(seconds=self.connection.clock() - begun) - _SLACK
            found = look.pick(listed, since)
            if found is not None:
                return found
        return None

    def _dated(self, shape: TypeAdapter[L]) -> Callable[[Answer], tuple[L, datetime]]:
        """Times are compared by the server's own clock, where it tells it."""

        def take(answer: Answer) -> tuple[L, datetime]:
            now = http_date(answer.header("date")) or datetime.now(UTC)
            return read(answer, shape, self.connection.secrets), now

        return take


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
