"""Waits for a job of Stash: politely, and answered in time whatever Stash does."""

import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import anyio
import pytest

from stash_mcp.backends.base import Backend
from stash_mcp.errors import StashError, StashKeyError, StashServerError
from stash_mcp.models import InstallWish, JobStatus, Run, StashRunRequest
from stash_mcp.server import waiting
from stash_mcp.server.jobs import seconds_to_next_look
from stash_mcp.server.waiting import Sight, Watch, wait_for_news

pytestmark = pytest.mark.anyio

BEGUN = datetime(2026, 1, 2, tzinfo=UTC)


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


def run_of(status: str = "running", **fields: object) -> Run:
    request = StashRunRequest(
        reward_model_id="stash:m", task_model="t", reflection_model="r", max_metric_calls=40
    )
    unknown = dict.fromkeys(name for name, row in Run.model_fields.items() if row.is_required())
    given = {
        "id": "stash:r",
        "backend": "stash",
        "status": JobStatus(status),
        "request": request,
        "partial": False,
        "install": InstallWish(),
        "install_state": "off",
        "created_at": BEGUN,
    }
    return Run(**{**unknown, **given, **fields})


class Side:
    """Answers looks in order; the last answer is given again. looks: how many there were."""

    def __init__(self, *answers: Run | StashError | Callable[[], Run]) -> None:
        self._answers = iter(answers)
        self._next: Any = None
        self.looks = 0

    def get_run(self, run_id: str) -> Run:
        self.looks += 1
        self._next = next(self._answers, self._next)
        if isinstance(self._next, StashError):
            raise self._next
        return self._next if isinstance(self._next, Run) else self._next()

    def events(self, job_id: str, *, after: int = 0) -> list[object]:
        return []


async def waited(side: Side, seconds: float, poll: float = 0.001) -> Sight:
    async def report(_done: float, _total: float | None, _phase: str | None) -> None:
        pass

    backend: Any = side
    watch = Watch(lambda: _as_backend(backend), "stash:r", 0)
    return await wait_for_news(watch, seconds, "news", poll, report, lambda: BEGUN)


def _as_backend(side: Any) -> Backend:
    return side  # type: ignore[no-any-return]


def test_waits_in_a_row_go_on_at_the_pace_that_the_job_has_reached() -> None:
    run, pauses, age = run_of(), [], 0.0
    for _ in range(6):
        wait = 0.0
        for looks in range(1, 20):
            pause = seconds_to_next_look(run, looks, 0.25, BEGUN + timedelta(seconds=age + wait))
            pauses.append(pause)
            wait += pause
            if wait >= 50:
                break
        age += 50
    assert pauses == sorted(pauses)
    assert (pauses[0], pauses[-1]) == (2, 15)
    # A clock that is far from Stash's makes looks no more frequent than in one wait, nor rarer
    # than the longest pause.
    for days in (-400, 400):
        now = BEGUN + timedelta(days=days)
        assert 2 <= seconds_to_next_look(run, 1, 0.25, now) <= 15


async def test_a_failure_that_passes_ends_no_wait() -> None:
    down = StashServerError("Stash is down.", "Try again.", passing=True)
    side = Side(run_of(), down, down, run_of("succeeded"))
    sight = await waited(side, 20)
    assert (sight.job.status, sight.job.as_seen, side.looks) == ("succeeded", None, 4)


async def test_a_wait_that_ends_in_a_failure_shows_the_run_as_last_seen() -> None:
    side = Side(run_of(), StashServerError("Stash is down.", "Try again.", passing=True))
    sight = await waited(side, 0.2)
    assert sight.job.status == "running"
    assert "as it was last seen: Stash is down." in (sight.job.as_seen or "")


async def test_a_failure_that_stays_is_told_at_once() -> None:
    side = Side(run_of(), StashKeyError("The key is refused.", "Sign in."))
    with pytest.raises(StashKeyError):
        await waited(side, 20)
    assert side.looks == 2


async def test_a_server_that_asks_to_wait_is_left_alone_until_the_answer_is_due() -> None:
    busy = StashServerError("Too many.", "Wait.", passing=True, retry_after=600)
    side = Side(run_of(), busy)
    sight = await waited(side, 0.3)
    assert side.looks == 2
    assert "Too many" in (sight.job.as_seen or "")


async def test_an_answer_comes_in_time_though_stash_hangs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting, "LATE_SECONDS", 0.05)
    ended = threading.Event()

    def hangs() -> Run:
        ended.wait(30)
        return run_of()

    try:
        with anyio.fail_after(10):
            sight = await waited(Side(run_of(), hangs), 0.1)
    finally:
        ended.set()
    assert "has not answered since" in (sight.job.as_seen or "")


@pytest.mark.parametrize("status", ["queued", "running"])
async def test_a_run_that_is_not_asked_for_is_not_waited_for(status: str) -> None:
    side = Side(run_of(status, as_seen="Shown as it was last seen: it is of another."))
    with anyio.fail_after(10):
        await waited(side, 50)
    assert side.looks == 1
