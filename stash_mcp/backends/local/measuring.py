"""Runs of Stash measured again on this machine: jobs of the queue like any run."""

from stash_mcp.backends.base import RunOrder, StartedRun
from stash_mcp.backends.claude_code import check_command
from stash_mcp.backends.extras import require_extra
from stash_mcp.backends.local.runs import Runs, check_base_url
from stash_mcp.checkpoints import verify_checkpoint
from stash_mcp.datasets.examples import asked_alike, build_examples
from stash_mcp.errors import ExamplesError, LibraryBusyError
from stash_mcp.models import BUILTIN_REFLECTION, InstallWish, RemoteResult, RunRequest
from stash_mcp.runs.plan import make_plan
from stash_mcp.settings import claude_command
from stash_mcp.storage.database import BUSY_SECONDS
from stash_mcp.storage.files import try_lock

LEAST_QUESTIONS = 2


class Measuring(Runs):
    def measure(self, measured: RemoteResult, order: RunOrder) -> StartedRun:
        """Queue the measure, or find the equal one that is there.

        order: its reward model, task model and conversations, which are all replayed. Nothing is
        installed by it.
        """
        require_extra("local", "A measure on this machine")
        check_command((order.task_model,), claude_command())
        check_base_url(order.task_api_base)
        model = self._trained(order.reward_model_id)
        verify_checkpoint(self._model_folder(model.id).model_path)
        trace_ids = self._run_traces(order, model)
        built = build_examples(
            self._library.traces(trace_ids), self._library.annotations(trace_ids)
        )
        examples = list({asked_alike(row): row for row in reversed(built.examples)}.values())
        if len(examples) < LEAST_QUESTIONS:
            raise ExamplesError(
                "Only one conversation can be replayed, and a difference between two skills takes "
                "two at the least.",
                "Measure a run of a reward model that learned from more conversations.",
            )
        request = RunRequest(
            reward_model_id=order.reward_model_id,
            task_model=order.task_model,
            task_api_base=order.task_api_base,
            reflection_model=BUILTIN_REFLECTION,
            max_metric_calls=2 * len(examples),
            max_concurrency=order.max_concurrency,
            skill_name=measured.best.name,
            skill_description=measured.best.description,
            fresh=order.fresh,
            measured=measured,
        )
        plan = make_plan(
            examples,
            heldout=0,
            skipped=built.skipped,
            budget=request.max_metric_calls,
            minibatch=1,
            reflection_model=BUILTIN_REFLECTION,
            is_named=True,
            seed_characters=len(measured.best.body),
        ).model_copy(update={"notes": ()})
        with try_lock(self._settings.home / "start.lock", timeout=BUSY_SECONDS) as ours:
            if not ours:
                raise LibraryBusyError("Another run is being started.", "Do it again.")
            named = order.model_copy(update={"skill_name": measured.best.name})
            return self._start(named, request, examples, plan, InstallWish(mode="off"))
