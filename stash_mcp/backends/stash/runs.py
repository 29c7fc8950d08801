"""GEPA runs that Stash does, and what it cannot do with them."""

import contextlib

from stash_mcp.backends.base import LogPart, RunOrder, StartedRun, WaitingReflection
from stash_mcp.backends.stash import orders, views
from stash_mcp.backends.stash.desk import id_at_stash
from stash_mcp.backends.stash.reward_models import RewardModels
from stash_mcp.errors import NotFoundError, UnsupportedError
from stash_mcp.models import Candidate, Event, Run, Submission
from stash_mcp.stash.shapes import RunShape, RunStart

_OURS = ("install", "install_state", "install_note")
"""Of a run, what this library knows and Stash does not."""


class Runs(RewardModels):
    def start_run(self, order: RunOrder) -> StartedRun:
        """The person's wish for the skill is kept here, and followed from here."""
        id_at_stash(order.reward_model_id, "reward model")
        start = orders.run_start(order)
        wish = self._around.wish_of(order)
        known = None if order.new else self._unfinished_equal(start)
        shape = self._runs.keep(known or self._client.start_run(start))
        run = views.run(shape)
        self._remote_runs.remember(run, views.candidates(shape), wish)
        return StartedRun(run=self._with_wish(run), existing=known is not None)

    def _unfinished_equal(self, start: RunStart) -> RunShape | None:
        """One that is over may have had other comments to learn from; Stash does not tell."""
        for shape in self._client.list_runs():
            if not shape.is_final and orders.is_equal(start, shape):
                return shape
        return None

    def get_run(self, run_id: str) -> Run:
        known = self._over(run_id)
        return known or self._with_wish(views.run(self._shape(run_id)))

    def list_runs(self) -> list[Run]:
        runs = []
        for shape in self._client.list_runs():
            self._note(self._runs.keep(shape))
            runs.append(self._with_wish(views.run(shape)))
        return runs

    def list_candidates(self, run_id: str) -> list[Candidate]:
        """None until the run has succeeded: Stash gives them at the end."""
        if self._over(run_id) is not None:
            return self._remote_runs.candidates(run_id)
        return views.candidates(self._shape(run_id))

    def remember(self, run_id: str) -> None:
        """Know this run from now on without asking, as what is installed from it needs."""
        shape = self._shape(run_id)
        self._remote_runs.remember(views.run(shape), views.candidates(shape))

    def events(self, job_id: str, *, after: int = 0) -> list[Event]:
        """Stash tells none."""
        return []

    def _over(self, run_id: str) -> Run | None:
        """A run that is known here and over: it does not change any more."""
        id_at_stash(run_id, "run")
        known = self._remote_runs.find(run_id)
        return known if known is not None and known.status.is_final else None

    def _shape(self, run_id: str) -> RunShape:
        id = id_at_stash(run_id, "run")
        if id in self._models:
            # Runs and trainings are looked up by one id; this saves a question.
            raise NotFoundError(f"'{run_id}' is a reward model.", "Look at it as that.")
        known = self._runs.find(id)
        if known is not None:
            return known
        shape = self._runs.keep(self._client.get_run(id))
        self._note(shape)
        return shape

    def _note(self, shape: RunShape) -> None:
        self._remote_runs.seen(views.run(shape), views.candidates(shape))

    def _with_wish(self, run: Run) -> Run:
        known = self._remote_runs.find(run.id)
        if known is None:
            return run
        kept = {name: getattr(known, name) for name in _OURS}
        return run.model_copy(update=kept)

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
