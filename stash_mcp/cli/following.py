"""Following a training or a run until it is over: a bar on a terminal, lines elsewhere."""

import contextlib
import itertools
from collections.abc import Iterator, Sequence
from typing import Protocol

import typer
from rich.console import Console
from rich.progress import BarColumn, TaskID, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bar

from stash_mcp.cli.characters import visible
from stash_mcp.cli.printing import print_text, score
from stash_mcp.cli.session import Session
from stash_mcp.errors import StashError
from stash_mcp.models import Event, JobStatus, Progress, Run
from stash_mcp.server.counting import duration
from stash_mcp.server.jobs import Job, find_job, seconds_to_next_look, stop
from stash_mcp.server.wording import AT_STASH

POLL_SECONDS = 0.5
SECOND_CTRL_C_SECONDS = 3.0
INTERRUPTED = 130
MOST_MISSED = 10
"""Looks in a row for which Stash may be out of reach."""
MISSED_PAUSE_SECONDS = 15.0
LONGEST_PAUSE_SECONDS = 600.0


class View(Protocol):
    def show(self, job: Job, events: Sequence[Event]) -> None:
        """Show where the job stands, and the events since the last time."""


def follow(session: Session, job_id: str) -> Job:
    """Show the job until it is over, and return it. Ctrl-C leaves it to itself; a second one,
    soon after, cancels it.
    """
    try:
        with _view(session.err) as view:
            return _watch(session, job_id, view)
    except KeyboardInterrupt:
        _detach(session, job_id)
        raise typer.Exit(INTERRUPTED) from None


def _detach(session: Session, job_id: str) -> None:
    try:
        print_text(
            session.err,
            f"Detached; {job_id} goes on. Press Ctrl-C again within {SECOND_CTRL_C_SECONDS:.0f} s "
            f"to cancel it, or later: stash-skills cancel {job_id}",
        )
        print_text(session.err, f"Look again: stash-skills status {job_id} --follow")
        session.sleep(SECOND_CTRL_C_SECONDS)
    except KeyboardInterrupt:
        print_text(session.err, stop(session.backend, job_id).in_words)


def _watch(session: Session, job_id: str, view: View) -> Job:
    last, looks = 0, 0
    job = find_job(session.backend, job_id)
    while True:
        # The job before its events: once its end is seen, its last event is too.
        events = session.backend.events(job_id, after=last)
        last = events[-1].number if events else last
        view.show(job, events)
        if job.status.is_final or job.as_seen:
            return job
        looks += 1
        session.sleep(seconds_to_next_look(job, looks, POLL_SECONDS, session.clock()))
        job = _again(session, job)


def _again(session: Session, job: Job) -> Job:
    """As it stands now. What passes at Stash is waited for, a number of times in a row."""
    for missed in itertools.count(1):
        try:
            return find_job(session.backend, job.id)
        except StashError as error:
            asked_for = error.retry_after or 0
            if not error.passing or missed == MOST_MISSED or asked_for > LONGEST_PAUSE_SECONDS:
                raise
            if missed == 1:
                print_text(session.err, f"{error.problem} It is asked again; {job.id} goes on.")
        session.sleep(max(asked_for, MISSED_PAUSE_SECONDS))
    raise AssertionError("unreachable")


@contextlib.contextmanager
def _view(console: Console) -> Iterator[View]:
    if not console.is_terminal:
        yield _Lines(console)
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(bar_width=30),
        TextColumn("{task.fields[facts]}"),
        TimeElapsedColumn(),
    )
    with Bar(*columns, console=console, transient=True) as progress:
        yield _Bar(progress)


class _Lines:
    def __init__(self, console: Console) -> None:
        self._console = console

    def show(self, job: Job, events: Sequence[Event]) -> None:
        for event in events:
            print_text(self._console, event.message)


class _Bar:
    def __init__(self, progress: Bar) -> None:
        self._progress = progress
        self._task: TaskID = progress.add_task("waiting", total=None, facts="")

    def show(self, job: Job, events: Sequence[Event]) -> None:
        for event in events:
            print_text(self._progress.console, event.message, style="dim")
        now = job.progress or Progress(phase=AT_STASH)
        self._progress.update(
            self._task,
            description="waiting" if job.status is JobStatus.QUEUED else visible(now.phase),
            completed=now.done,
            total=now.total or None,
            facts=facts(job),
        )


def facts(job: Job) -> str:
    """What is known so far, in one short line."""
    now = job.progress
    if now is None:
        return ""
    parts = [f"{now.done}/{now.total}"] if now.total else []
    if isinstance(job, Run):
        parts.append(f"{now.metric_calls}/{job.request.max_metric_calls} calls")
        if now.best_score is not None:
            parts.append(f"in-sample best {score(now.best_score)} (seed {score(now.seed_score)})")
    if now.estimate_seconds is not None:
        parts.append(f"about {duration(now.estimate_seconds)} left")
    return ", ".join(parts)
