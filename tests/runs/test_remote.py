"""What the library knows of Stash's runs."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from stash_mcp.errors import NotFoundError
from stash_mcp.models import Candidate, InstallWish, JobStatus, Run, StashRunRequest
from stash_mcp.runs.installing import InstallQueue
from stash_mcp.runs.remote import (
    FIRST_MISSING_SECONDS,
    FIRST_SECONDS,
    LONGEST_MISSING_SECONDS,
    LONGEST_SECONDS,
    RemoteRuns,
    seconds_to_next,
)
from stash_mcp.storage.database import Database

NOW = datetime(2026, 1, 2, tzinfo=UTC)
CANDIDATES = (
    Candidate(number=0, skill="seed", score=0.5),
    Candidate(number=1, skill="best", score=0.6),
)

_WITH_DEFAULTS = {name for name, field in Run.model_fields.items() if not field.is_required()}


class Clock:
    def __init__(self) -> None:
        self.now = NOW

    def __call__(self) -> datetime:
        return self.now

    def later(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def database(tmp_path: Path) -> Database:
    return Database(tmp_path / "library.db")


@pytest.fixture
def runs(database: Database, clock: Clock) -> RemoteRuns:
    return RemoteRuns(database, clock, lambda low, high: high)


def run(status: str = "running", id: str = "stash:r") -> Run:
    request = StashRunRequest(
        reward_model_id="stash:m", task_model="t", reflection_model="r", max_metric_calls=40
    )
    given = {"backend": "stash", "partial": False, "install_state": "off"}
    unknown = dict.fromkeys(set(Run.model_fields) - _WITH_DEFAULTS)
    return Run(
        **{
            **unknown,
            **given,
            "id": id,
            "status": JobStatus(status),
            "request": request,
            "install": InstallWish(mode="off"),
            "created_at": NOW,
        }
    )


def test_looks_become_rarer_up_to_the_longest_and_are_spread() -> None:
    longest = [seconds_to_next(looks, lambda low, high: high) for looks in range(1, 12)]
    assert longest[0] == FIRST_SECONDS
    assert longest[-1] == LONGEST_SECONDS
    assert longest == sorted(longest)
    assert seconds_to_next(10**6) <= LONGEST_SECONDS
    spread = {seconds_to_next(20) for _ in range(20)}
    assert len(spread) > 1
    assert min(spread) >= 0.75 * LONGEST_SECONDS


def test_a_run_comes_back_as_it_was_kept_and_with_the_wish(runs: RemoteRuns) -> None:
    wish = InstallWish(mode="ask", min_gain=0.1)
    runs.remember(run(), (), wish)
    kept = runs.get("stash:r")
    assert kept == run().model_copy(update={"install": wish, "install_state": "waiting"})
    assert isinstance(kept.request, StashRunRequest)
    assert runs.all() == [kept]


def test_the_first_wish_holds(runs: RemoteRuns) -> None:
    runs.remember(run(), (), InstallWish(mode="off"))
    runs.remember(run(), (), InstallWish(mode="auto"))
    assert runs.get("stash:r").install.mode == "off"


def test_what_is_only_known_is_not_followed(runs: RemoteRuns, clock: Clock) -> None:
    runs.remember(run("succeeded"), CANDIDATES)
    clock.later(10_000)
    assert runs.claim_due() == []
    assert runs.candidates("stash:r") == list(CANDIDATES)


def test_what_nobody_here_knows_is_not_kept_by_a_look(runs: RemoteRuns) -> None:
    runs.seen(run(), ())
    assert runs.find("stash:r") is None
    assert runs.candidates("stash:r") == []
    with pytest.raises(NotFoundError):
        runs.get("stash:r")


def test_a_due_run_is_given_to_one_and_is_due_again_later(runs: RemoteRuns, clock: Clock) -> None:
    runs.remember(run(), (), InstallWish())
    assert not runs.has_due()
    clock.later(FIRST_SECONDS)
    assert runs.has_due()
    assert runs.claim_due() == ["stash:r"]
    assert runs.claim_due() == []
    clock.later(FIRST_SECONDS)
    assert runs.claim_due() == []
    clock.later(FIRST_SECONDS)
    assert runs.claim_due() == ["stash:r"]


@pytest.mark.parametrize("days", [-400, 400])
def test_a_clock_that_was_set_to_another_year_stops_nothing(
    runs: RemoteRuns, clock: Clock, days: int
) -> None:
    runs.remember(run(), (), InstallWish())
    clock.later(days * 86_400)
    assert runs.claim_due() == ["stash:r"]


def test_its_end_puts_it_into_the_queue_of_installations_once(
    runs: RemoteRuns, database: Database, clock: Clock
) -> None:
    queue = InstallQueue(database, "remote_runs")
    runs.remember(run(), (), InstallWish())
    assert queue.waiting() == []
    runs.seen(run("succeeded"), CANDIDATES)
    assert queue.waiting() == ["stash:r"]
    assert queue.settle("stash:r", "installed", "done", clock())
    assert not queue.settle("stash:r", "staged", "again", clock())
    assert queue.waiting() == []
    # Seen again by a process that had it from before.
    runs.seen(run("succeeded"), CANDIDATES)
    assert runs.get("stash:r").install_state == "installed"
    clock.later(1000)
    assert not runs.has_due()


def test_a_wait_that_a_server_asks_for_is_kept_to_within_reason(
    runs: RemoteRuns, clock: Clock
) -> None:
    runs.remember(run(), (), InstallWish())
    runs.postpone("stash:r", 600)
    clock.later(599)
    assert runs.claim_due() == []
    clock.later(1)
    assert runs.claim_due() == ["stash:r"]
    runs.postpone("stash:r", 10**9)
    clock.later(3600)
    assert runs.claim_due() == ["stash:r"]


def test_a_missing_run_is_looked_at_ever_more_seldom_and_never_given_up(
    runs: RemoteRuns, clock: Clock
) -> None:
    runs.remember(run(), (), InstallWish())
    gaps, last = [], clock.now
    for _ in range(1500):
        clock.later(600)
        for id in runs.claim_due():
            gaps.append((clock.now - last).total_seconds())
            last = clock.now
            runs.lose(id)
    assert gaps[1:] == sorted(gaps[1:])
    assert gaps[1] == FIRST_MISSING_SECONDS
    assert gaps[-1] == LONGEST_MISSING_SECONDS
    assert "not found by the account whose key is set" in (runs.get("stash:r").as_seen or "")


def test_a_missing_run_that_somebody_finds_is_followed_as_before(
    runs: RemoteRuns, clock: Clock
) -> None:
    runs.remember(run(), (), InstallWish())
    runs.lose("stash:r")
    runs.seen(run(), ())
    assert runs.get("stash:r").as_seen is None
    clock.later(FIRST_SECONDS)
    assert runs.claim_due() == ["stash:r"]


def test_a_run_that_nobody_follows_is_not_followed_once_it_is_missing(
    runs: RemoteRuns, clock: Clock
) -> None:
    runs.remember(run(), ())
    runs.lose("stash:r")
    clock.later(10 * LONGEST_MISSING_SECONDS)
    assert not runs.has_due()


def test_a_run_of_one_stash_is_shown_and_left_alone_by_who_asks_another(
    runs: RemoteRuns, clock: Clock
) -> None:
    here, there = runs.at("https://here"), runs.at("https://there")
    here.remember(run(), (), InstallWish())
    kept = here.get("stash:r")
    clock.later(10_000)
    assert (here.has_due(), there.has_due(), there.claim_due()) == (True, False, [])
    there.seen(run("succeeded"), CANDIDATES)
    there.remember(run("failed"), CANDIDATES, InstallWish(mode="off"))
    there.lose("stash:r")
    assert here.get("stash:r") == kept
    assert kept.as_seen is None
    [shown] = there.all()
    assert there.is_elsewhere(shown.id)
    assert "of the Stash at https://here, which is not the one set now" in (shown.as_seen or "")
    assert here.claim_due() == ["stash:r"]


def test_a_run_of_an_unknown_stash_is_of_the_first_that_tells_of_it(runs: RemoteRuns) -> None:
    runs.remember(run("succeeded"), CANDIDATES)
    here, there = runs.at("https://here"), runs.at("https://there")
    assert not there.is_elsewhere("stash:r")
    here.seen(run("succeeded"), CANDIDATES)
    assert there.is_elsewhere("stash:r")
    assert there.candidates("stash:r") == list(CANDIDATES)


def test_what_another_version_kept_otherwise_is_as_if_it_were_not_known(
    runs: RemoteRuns, database: Database
) -> None:
    runs.remember(run(), (), InstallWish())
    with database.write() as connection:
        connection.execute("""UPDATE remote_runs SET run = '{"id": "stash:r"}'""")
    assert runs.find("stash:r") is None
    assert runs.all() == []
    runs.seen(run("succeeded"), CANDIDATES)
    assert _numbers(runs.candidates("stash:r")) == [0, 1]
    assert runs.get("stash:r").install_state == "waiting"


def _numbers(candidates: Sequence[Candidate]) -> list[int]:
    return [row.number for row in candidates]
