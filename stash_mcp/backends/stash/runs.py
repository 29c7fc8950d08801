"""GEPA runs that Stash does, and what it cannot do with them."""

import contextlib
from urllib.parse import urlsplit

from stash_mcp.backends.base import LogPart, RunOrder, StartedRun, WaitingReflection
from stash_mcp.backends.ids import STASH_PREFIX, raw
from stash_mcp.backends.stash import orders, views
from stash_mcp.backends.stash.desk import id_at_stash
from stash_mcp.backends.stash.reward_models import RewardModels
from stash_mcp.errors import (
    InputError,
    LibraryBusyError,
    NotFoundError,
    StashAnswerError,
    StashError,
    StashNotFoundError,
    UnsupportedError,
)
from stash_mcp.models import Candidate, Event, InstallWish, JobStatus, Run, Submission
from stash_mcp.runs.remote import RemoteRuns
from stash_mcp.stash.sent import RunStart
from stash_mcp.stash.shapes import RunShape
from stash_mcp.stash.wording import left_out
from stash_mcp.storage.database import BUSY_SECONDS
from stash_mcp.storage.files import try_lock

_OURS = ("install", "install_state", "install_note")
"""Of a run, what this library knows and Stash does not."""


class Runs(RewardModels):
    def start_run(self, order: RunOrder) -> StartedRun:
        """The person's wish for the skill is kept here, and followed from here.

        The newest equal run that is queued, running or has succeeded is returned, unless the order
        is for a new one. Comments may have been added since it was started, which Stash does not
        tell: who is answered so is told when it ended. The other way a second payment would go
        unnoticed.
        """
        id_at_stash(order.reward_model_id, "reward model")
        start = orders.run_start(order, self._host())
        wish = self._around.wish_of(order)
        # Two equal orders at once must not both find that there is none, and both be paid for.
        with try_lock(self._around.start_lock, timeout=BUSY_SECONDS) as ours:
            if not ours:
                raise LibraryBusyError(
                    "Another run is being started at Stash from this machine.",
                    "Nothing was sent. List the runs, and do it again.",
                )
            return self._started(start, wish, new=order.new)

    def _started(self, start: RunStart, wish: InstallWish, *, new: bool) -> StartedRun:
        known = None if new else self._equal(start)
        shape = self._runs.keep(self._whole(known or self._client.start_run(start)))
        run, kept = views.run(shape), self.kept_runs
        kept.remember(run, views.candidates(shape), wish)
        return StartedRun(run=_with_wish(run, kept), existing=known is not None)

    def _equal(self, start: RunStart) -> RunShape | None:
        """The newest that does the same and has not failed."""
        equal = [
            shape
            for shape in self._client.list_runs().rows
            if shape.status != "failed" and orders.is_equal(start, shape)
        ]
        return max(equal, key=lambda shape: shape.created_at, default=None)

    def _host(self) -> str:
        """Stash's own; "" where none is set."""
        return urlsplit(self.door.server() or "").hostname or ""

    def get_run(self, run_id: str) -> Run:
        """As it was last seen, with the reason, where it is of another Stash than the one that is
        set, or not found by this account.
        """
        kept = self.kept_runs
        known = _settled(kept, run_id)
        if known is not None:
            return known
        try:
            return _with_wish(views.run(self._shape(run_id)), kept)
        except StashNotFoundError:
            kept.lose(run_id)
            lost = kept.find(run_id)
            if lost is None:
                raise
            return lost

    def list_runs(self) -> list[Run]:
        """Those that can be read; `unreached` names the others."""
        runs, kept = [], self.kept_runs
        listed = self._client.list_runs()
        self._unread = left_out(listed.unread, "run", STASH_PREFIX)
        for shape in listed.rows:
            if _has_best(shape):
                _note(self._runs.keep(shape), kept)
            runs.append(_with_wish(views.run(shape), kept))
        return runs

    def list_candidates(self, run_id: str) -> list[Candidate]:
        """None until the run has succeeded: Stash gives them at the end."""
        kept = self.kept_runs
        if _settled(kept, run_id) is not None:
            return kept.candidates(run_id)
        try:
            return views.candidates(self._shape(run_id))
        except StashNotFoundError:
            if kept.find(run_id) is None:
                raise
            return kept.candidates(run_id)

    def check_skill(self, run_id: str, best: str) -> None:
        """Raise StashAnswerError where the SKILL.md that Stash gives for the run is another text
        than `best`, but for line ends. Where Stash cannot be asked nothing is checked.
        """
        try:
            text = self._client.skill(raw(run_id))
        except (StashError, InputError):
            return
        if _plain(text) != _plain(best):
            raise StashAnswerError(
                f"Stash gives two texts as the best skill of '{run_id}': one with the run, and "
                "another one as its SKILL.md.",
                "Read the candidates, and name the one to install by its number.",
            )

    def events(self, job_id: str, *, after: int = 0) -> list[Event]:
        """Stash tells none."""
        return []

    def _shape(self, run_id: str) -> RunShape:
        id, client = id_at_stash(run_id, "run"), self._client
        if id in self._models:
            # Runs and trainings are looked up by one id; this saves a question.
            raise NotFoundError(f"'{run_id}' is a reward model.", "Look at it as that.")
        known = self._runs.find(id)
        shape = self._whole(known or client.get_run(id))
        if shape is not known:
            _note(self._runs.keep(shape), self.kept_runs)
        return shape

    def _whole(self, shape: RunShape) -> RunShape:
        """With Stash's SKILL.md as the best skill, where the run comes without one. In Stash the
        two are one text: the whole file, its frontmatter included.
        """
        if _has_best(shape):
            return shape
        try:
            return shape.model_copy(update={"best_skill": self._client.skill(shape.id)})
        except StashNotFoundError:
            return shape

    # --- what it cannot do ---

    def cancel(self, job_id: str) -> Run | None:
        """Nothing is left to do for one that is over."""
        with contextlib.suppress(NotFoundError):
            run = self.get_run(job_id)
            if run.status.is_final:
                return run
            raise _cannot_cancel(job_id)
        if self.get_reward_model(job_id).status.is_final:
            return None
        raise _cannot_cancel(job_id)

    def resume_run(self, run_id: str) -> Run:
        raise UnsupportedError(
            f"Stash cannot carry on '{run_id}'.", "Start another run, once the cause is mended."
        )

    def read_log(self, job_id: str, *, offset: int = 0) -> LogPart:
        raise UnsupportedError(
            f"Stash gives no log of '{job_id}'.", "get_run has the reason why it failed."
        )

    def get_reflection(self, run_id: str, number: int | None = None) -> WaitingReflection:
        raise _asks_no_agent(run_id)

    def submit_reflection(self, submission: Submission) -> Run:
        raise _asks_no_agent(submission.run_id)


def _settled(kept: RemoteRuns, run_id: str) -> Run | None:
    """A run that is known here and is not to be asked for: it is over, with all that comes of it,
    or it is of another Stash.
    """
    id_at_stash(run_id, "run")
    known = kept.find(run_id)
    if known is None or kept.is_elsewhere(run_id):
        return known
    succeeded = known.status is JobStatus.SUCCEEDED
    is_whole = known.best_candidate is not None if succeeded else known.status.is_final
    return known if is_whole else None


def _has_best(shape: RunShape) -> bool:
    return shape.status != "succeeded" or shape.best_skill is not None


def _note(shape: RunShape, kept: RemoteRuns) -> None:
    kept.seen(views.run(shape), views.candidates(shape))


def _with_wish(run: Run, kept: RemoteRuns) -> Run:
    known = None if kept.is_elsewhere(run.id) else kept.find(run.id)
    if known is None:
        return run
    return run.model_copy(update={name: getattr(known, name) for name in _OURS})


def _plain(text: str) -> str:
    return text.replace("\r\n", "\n").rstrip()


def _cannot_cancel(job_id: str) -> UnsupportedError:
    return UnsupportedError(
        f"Stash cannot cancel '{job_id}': it has no way to stop a run or a training.",
        "Let it come to its end; what is not wanted then is not installed (uninstall_skill).",
    )


def _asks_no_agent(run_id: str) -> UnsupportedError:
    return UnsupportedError(
        f"The run '{run_id}' of Stash asks no agent: a hosted model writes its skill.",
        'Do a run on this machine with the reflection model "agent" to write it yourself.',
    )
