"""Runs of the local pipeline: planning, starting, cancelling, carrying on, reading."""

import os
from collections.abc import Sequence
from urllib.parse import urlsplit

from stash_mcp.backends import views
from stash_mcp.backends.base import RunOrder, StartedRun
from stash_mcp.backends.claude_code import capped, check_command
from stash_mcp.backends.extras import require_extra
from stash_mcp.backends.ids import refuse_stash_ids
from stash_mcp.backends.local.keys import keyless
from stash_mcp.backends.local.workshop import Workshop
from stash_mcp.backends.prices import can_be_capped, expected_cost_usd
from stash_mcp.checkpoints import verify_checkpoint
from stash_mcp.datasets.examples import build_examples, split_heldout
from stash_mcp.errors import (
    ExamplesError,
    InputError,
    LibraryBusyError,
    NotReadyError,
    SkillDocumentError,
)
from stash_mcp.models import (
    BUILTIN_REFLECTION,
    AdoptedSkill,
    Candidate,
    Event,
    Example,
    InstallTarget,
    InstallWish,
    Job,
    JobKind,
    Plan,
    Run,
    RunRequest,
    Skipped,
    TrainRequest,
)
from stash_mcp.runs.plan import check_budget, default_budget, make_plan
from stash_mcp.settings import claude_command, provider_keys
from stash_mcp.skills import adoption
from stash_mcp.skills.document import problems_with_description, problems_with_name
from stash_mcp.skills.journal import complete_if_free
from stash_mcp.skills.scan import active_problems
from stash_mcp.skills.targets import resolve, resolve_all
from stash_mcp.skills.written_paths import absolute, is_path, refuse_our_own
from stash_mcp.storage.calls import call_key
from stash_mcp.storage.database import BUSY_SECONDS
from stash_mcp.storage.files import try_lock

# Fields of an order that say how the run is started or what happens after it.
_NOT_THE_RUNS_OWN = (
    *("max_metric_calls", "trace_ids", "heldout", "new", "seed"),
    *("install", "install_agents", "install_scope", "min_gain"),
)


class Runs(Workshop):
    def start_run(self, order: RunOrder) -> StartedRun:
        require_extra("local", "A run on this machine")
        refuse_stash_ids((order.reward_model_id, *(order.trace_ids or ())))
        if not order.reflection_model:
            order = order.model_copy(update={"reflection_model": BUILTIN_REFLECTION})
        _check_identity(order)
        order, adopted = self._seeded(order)
        check_command((order.task_model, order.reflection_model), claude_command())
        check_base_url(order.task_api_base)
        check_base_url(order.reflection_api_base)
        model = self._trained(order.reward_model_id)
        verify_checkpoint(self._model_folder(model.id).model_path)
        trace_ids = self._run_traces(order, model)
        built = build_examples(
            self._library.traces(trace_ids), self._library.annotations(trace_ids)
        )
        _check_comments(order, built.examples)
        examples, heldout = built.examples, 0
        if order.heldout:
            examples, heldout = split_heldout(built.examples, order.random_seed)
        wish = self.wish(order)
        request, plan = _planned(order, adopted, examples, heldout, built.skipped)
        # Two equal orders at once must not both find that there is none.
        with try_lock(self._settings.home / "start.lock", timeout=BUSY_SECONDS) as ours:
            if not ours:
                raise LibraryBusyError("Another run is being started.", "Do it again.")
            started = self._start(order, request, examples, plan, wish)
        return started

    def _start(
        self,
        order: RunOrder,
        request: RunRequest,
        examples: Sequence[Example],
        plan: Plan,
        wish: InstallWish,
    ) -> StartedRun:
        key = _request_key(request, examples)
        known = None if order.new else self._jobs.with_request_key(key)
        if known is not None:
            self._revive()
            return StartedRun(run=self.get_run(known.id), existing=True)
        needs = provider_keys((request.task_model, request.reflection_model))
        job_id = f"run-{self._new_id()}"
        folder = self._run_folder(job_id)
        with folder.created():
            folder.create_run(request, examples)
            self._jobs.create(
                job_id,
                JobKind.GEPA,
                order.skill_name or job_id,
                request,
                plan,
                request_key=key,
                install=wish,
                needs=needs,
            )
        self._start_for(needs)
        return StartedRun(run=self.get_run(job_id), existing=False, warnings=keyless(request))

    def _seeded(self, order: RunOrder) -> tuple[RunOrder, AdoptedSkill | None]:
        """The order with the name and the description of the skill that it starts from, and that
        skill; None for the usual seed.
        """
        if order.seed == adoption.DEFAULT:
            return order, None
        complete_if_free(self._manifest, self._settings.backups_dir)
        targets = resolve_all(self._settings, order.install_scope, order.install_agents)
        seed = self._written(order.seed)
        latest = adoption.chosen(self._manifest, seed, order.skill_name, targets)
        skill, adopted = adoption.adopt(latest, order.skill_name)
        fields = {
            "skill_name": order.skill_name or skill.name,
            "skill_description": order.skill_description or skill.description,
        }
        return order.model_copy(update=fields), adopted

    def _written(self, skill: str) -> str:
        """A path as the manifest has it; a relative one starts at the project. A name stays."""
        if not is_path(skill) and "\0" not in skill:
            return skill
        return os.path.realpath(absolute(self._settings, skill))

    def wish(self, order: RunOrder) -> InstallWish:
        """Where the skill goes, as absolute folders: whoever installs it stands elsewhere."""
        targets = [
            resolve(self._settings, order.install_scope, agent) for agent in order.install_agents
        ]
        for row in targets:
            refuse_our_own(self._settings, row.skills_dir)
        return InstallWish(
            mode=order.install or self._settings.install_mode,
            targets=tuple(
                InstallTarget(agent=row.agent, scope=row.scope, skills_dir=str(row.skills_dir))
                for row in targets
            ),
            min_gain=order.min_gain,
        )

    def _run_traces(self, order: RunOrder, model: Job) -> tuple[str, ...]:
        if order.trace_ids is not None:
            return self._library.matching_ids(order.trace_ids)
        known = self._library.matching_ids(None)
        trained_on = set(TrainRequest.model_validate(model.request).trace_ids)
        return tuple(trace_id for trace_id in known if trace_id in trained_on) or known

    def cancel(self, job_id: str) -> Run | None:
        """Also a training, for which None is returned."""
        job = self._jobs.get(job_id)
        if not self._jobs.cancel(job_id) and not self._jobs.get(job_id).status.is_final:
            raise NotReadyError(f"'{job_id}' could not be cancelled.", "Do it again.")
        return self.get_run(job_id) if job.kind is JobKind.GEPA else None

    def resume_run(self, run_id: str) -> Run:
        job = self._jobs.get(run_id, JobKind.GEPA)
        if job.status.is_final and not self._run_folder(run_id).examples_path.exists():
            raise NotReadyError(
                f"The run '{run_id}' cannot be carried on: its inputs were pruned.",
                "Start another one; answers that are still kept are not paid again.",
            )
        if not self._jobs.resume(run_id):
            raise NotReadyError(
                f"The run '{run_id}' is {job.status}; only a failed or cancelled one is resumed.",
                "Look at it with get_run, or start another one.",
            )
        self._start_for(self._jobs.get(run_id).needs)
        return self.get_run(run_id)

    def get_run(self, run_id: str) -> Run:
        self._revive()
        job = self._jobs.get(run_id, JobKind.GEPA)
        run = views.run(job, self._jobs.candidates(run_id), self._reflections.pending(run_id))
        [run] = self._as_installed([run])
        return run.model_copy(update={"stalled": self._stalled(job)})

    def list_runs(self) -> list[Run]:
        self._revive()
        waiting = self._reflections.all_pending()
        return self._as_installed(
            [
                views.run(job, self._jobs.candidates(job.id), waiting.get(job.id, ()))
                for job in self._jobs.all(JobKind.GEPA)
            ]
        )

    def _as_installed(self, runs: Sequence[Run]) -> list[Run]:
        """What was installed at a run's end may have been taken away since."""
        gone = self._manifest.taken_away()
        return [
            views.without_skill(run) if run.install_state == "installed" and run.id in gone else run
            for run in runs
        ]

    def events(self, job_id: str, *, after: int = 0) -> list[Event]:
        return self._jobs.events(self._jobs.get(job_id).id, after)

    def list_candidates(self, run_id: str) -> list[Candidate]:
        return self._jobs.candidates(self._jobs.get(run_id, JobKind.GEPA).id)


def _planned(
    order: RunOrder,
    adopted: AdoptedSkill | None,
    examples: Sequence[Example],
    heldout: int,
    skipped: Sequence[Skipped],
) -> tuple[RunRequest, Plan]:
    """What will be done and what that takes. Raises BudgetError."""
    scored = len(examples) - heldout
    minibatch = min(order.minibatch_size, scored)
    at_once = order.proposals_at_once
    budget = order.max_metric_calls or default_budget(scored, minibatch, at_once)
    check_budget(budget, scored, minibatch, at_once)
    request = RunRequest(
        **order.model_dump(exclude={*_NOT_THE_RUNS_OWN}),
        max_metric_calls=budget,
        heldout=heldout,
        adopted=adopted,
    )
    plan = make_plan(
        examples,
        heldout=heldout,
        skipped=skipped,
        budget=budget,
        minibatch=minibatch,
        reflection_model=order.reflection_model,
        at_once=at_once,
        is_named=None not in (order.skill_name, order.skill_description),
        seed_characters=0 if adopted is None else len(adopted.body),
    )
    request, bound = capped(request)
    seeded = () if adopted is None else (adoption.in_words(adopted),)
    plan = plan.model_copy(update={"notes": (*seeded, *plan.notes, *bound)})
    cost = expected_cost_usd(plan, request)
    if order.max_cost_usd is not None and not can_be_capped(request):
        raise InputError(
            "max_cost_usd cannot be kept: the price of one of the models is not known.",
            "Leave it out and bound the run with max_metric_calls or max_seconds.",
        )
    return request, plan.model_copy(update={"cost_usd_estimate": cost})


def _check_comments(order: RunOrder, examples: Sequence[Example]) -> None:
    if order.reflection_model != BUILTIN_REFLECTION:
        return
    if not any(example.feedback for example in examples):
        raise ExamplesError(
            f"None of the {len(examples)} conversations has a comment, and {BUILTIN_REFLECTION} "
            "writes a skill from nothing else.",
            "Comment on some of them (annotate_trace, or `stash-skills annotate`), or name a "
            "model as reflection_model.",
        )


def _request_key(request: RunRequest, examples: Sequence[Example]) -> str:
    return call_key(
        request=request.model_dump(mode="json"),
        examples=[example.model_dump(mode="json") for example in examples],
    )


def check_base_url(url: str | None) -> None:
    if url is None:
        return
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError as error:
        raise _unusable_url(url) from error
    if not usable:
        raise _unusable_url(url)
    if parts.username or parts.password or parts.query:
        raise InputError(
            "The base URL of a model server holds a name, a password or a parameter.",
            "It is stored and shown; give the key in the environment (OPENAI_API_KEY) instead.",
        )


def _unusable_url(url: str) -> InputError:
    return InputError(
        f"'{url}' is not the URL of a model server.",
        "Write it with its scheme, such as http://localhost:8000/v1.",
    )


def _check_identity(order: RunOrder) -> None:
    problems: list[str] = []
    if order.skill_name is not None:
        problems += problems_with_name(order.skill_name)
    if order.skill_description is not None:
        problems += problems_with_description(order.skill_description)
        problems += active_problems(order.skill_description)
    if problems:
        raise SkillDocumentError(
            f"The skill cannot be called so: {' '.join(problems)}",
            "Correct skill_name and skill_description, or leave them out.",
        )
