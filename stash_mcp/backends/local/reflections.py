"""Runs whose reflection model is the agent: what they ask, and taking its answers."""

from stash_mcp.backends.base import WaitingReflection
from stash_mcp.backends.extras import has_extra
from stash_mcp.backends.local.runs import Runs
from stash_mcp.errors import InputError, NotReadyError, ReflectionRefusedError
from stash_mcp.models import AGENT_REFLECTION, JobStatus, Reflection, Run, Submission
from stash_mcp.runs.submissions import answer_of
from stash_mcp.skills.proposal import Refusal


class Reflections(Runs):
    def get_reflection(self, run_id: str, number: int | None = None) -> WaitingReflection:
        run = self._agents_run(run_id)
        waiting = run.reflections_waiting
        if number is None:
            number = waiting[0] if waiting else None
        reflection = None if number is None else self._waiting(run, number)
        return WaitingReflection(run=run, reflection=reflection, waiting=waiting)

    def submit_reflection(self, submission: Submission) -> Run:
        run = self._agents_run(submission.run_id)
        reflection = self._waiting(run, submission.number)
        answer = answer_of(submission, reflection)
        if isinstance(answer, Refusal):
            raise ReflectionRefusedError(
                f"Reflection {reflection.number} of '{run.id}' cannot be answered so: "
                f"{answer.reason}",
                "It still waits: correct that and submit it again.",
            )
        if not self._reflections.answer(run.id, reflection.number, answer):
            # Answered by another session, or the run was cancelled, since we looked.
            self._waiting(self.get_run(run.id), reflection.number)
            raise NotReadyError(f"The run '{run.id}' changed meanwhile.", "Submit it again.")
        self._wake(run.id)
        return self.get_run(run.id)

    def _agents_run(self, run_id: str) -> Run:
        run = self.get_run(run_id)
        if run.request.reflection_model != AGENT_REFLECTION:
            raise InputError(
                f"The run '{run_id}' asks no agent: its skill is written by "
                f"'{run.request.reflection_model}'.",
                f'Start one with the reflection model "{AGENT_REFLECTION}" to write its skill '
                "yourself.",
            )
        return run

    def _waiting(self, run: Run, number: int) -> Reflection:
        reflection = self._reflections.get(run.id, number)
        if run.status.is_final:
            raise NotReadyError(
                f"The run '{run.id}' is {run.status} and asks for nothing.",
                "A failed or cancelled one asks again when it is carried on (resume_run, or "
                f"`stash-skills resume {run.id}`).",
            )
        if reflection.state != "pending":
            listed = ", ".join(map(str, run.reflections_waiting)) or "none"
            over = "is not asked any more" if reflection.state == "closed" else "is answered"
            raise NotReadyError(
                f"Reflection {number} of '{run.id}' {over}.", f"Those that wait: {listed}."
            )
        return reflection

    def _wake(self, run_id: str) -> None:
        """See to it that a worker takes the answer: the one that waits for it, or a new one."""
        job = self._jobs.get(run_id)
        if not has_extra("local"):
            return
        if job.status is JobStatus.QUEUED:
            self._start_for(job.needs)
        elif not job.parked:
            self._start_worker(self._settings)
