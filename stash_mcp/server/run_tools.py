"""Tools for runs: starting one, following it, stopping it, carrying it on, listing them."""

from collections.abc import Callable
from datetime import datetime
from typing import Annotated, Any, Literal

from mcp.server.mcpserver import Context
from mcp.server.mcpserver.tools import Tool
from pydantic import Field

from stash_mcp.backends.base import RunOrder, Scope
from stash_mcp.server.job_results import JobState
from stash_mcp.server.jobs import queue_places, stop
from stash_mcp.server.opening import LazyBackend
from stash_mcp.server.parameters import (
    Above0,
    AtLeast0,
    AtLeast1,
    JobId,
    Limit,
    Offset,
    RunId,
    TraceIds,
    given,
    make_tool,
)
from stash_mcp.server.run_results import JobChange, RunList, StartResult
from stash_mcp.server.waiting import Until, Watch, wait_for_news

MAX_WAIT_SECONDS = 50


class RunTools:
    def __init__(
        self, backend: LazyBackend, clock: Callable[[], datetime], poll_seconds: float
    ) -> None:
        self._backend = backend
        self._clock = clock
        self._poll_seconds = poll_seconds

    def tools(self) -> list[Tool]:
        return [
            make_tool(self.start_gepa_run, "Start a GEPA run", calls_models=True),
            make_tool(
                self.get_run, "Follow a run or a training", reads_only=True, calls_models=True
            ),
            make_tool(
                self.cancel_run, "Stop a run or a training", idempotent=True, calls_models=True
            ),
            make_tool(self.resume_run, "Carry on a run", calls_models=True),
            make_tool(self.list_runs, "List runs", reads_only=True, calls_models=True),
        ]

    def start_gepa_run(
        self,
        reward_model_id: Annotated[str, Field(min_length=1, description="A succeeded one")],
        task_model: Annotated[
            str,
            Field(
                min_length=1,
                description="The model that the skill is for, by its LiteLLM name, such as "
                "anthropic/claude-haiku-4-5",
            ),
        ],
        # The default needs no key: a first run works before anything is set up.
        reflection_model: Annotated[
            str,
            Field(
                description="The model that writes the skill. builtin/comments (default) composes "
                "it from the comments without a model; agent: you write it, when get_run asks you "
                "to; a strong model writes better ones. At Stash a model of its choice",
            ),
        ] = "",
        task_api_base: Annotated[
            str, Field(description="URL of an OpenAI-compatible server for task_model")
        ] = "",
        reflection_api_base: Annotated[
            str, Field(description="The same for reflection_model")
        ] = "",
        max_metric_calls: Annotated[
            AtLeast1 | None,
            Field(
                description="Budget: replies of the task model that are scored; default: enough "
                "for 6 proposals",
            ),
        ] = None,
        skill_name: Annotated[
            str, Field(max_length=64, description="a-z, 0-9 and hyphens; default: made up")
        ] = "",
        skill_description: Annotated[
            str, Field(max_length=1024, description="When an agent loads it; default: made up")
        ] = "",
        trace_ids: TraceIds = (),
        seed: Annotated[
            str,
            Field(
                min_length=1,
                description="The first body. default: the description. installed: the installed "
                "skill (skill_name, or the only one), with the person's edits; or its name or path",
            ),
        ] = "default",
        random_seed: Annotated[int, Field(ge=0, le=2**32 - 1)] = 0,
        minibatch_size: Annotated[int, Field(ge=1, le=100)] = 3,
        proposals_at_once: Annotated[
            int, Field(ge=1, le=16, description="More than 1: in parallel, so faster")
        ] = 1,
        max_concurrency: Annotated[
            int, Field(ge=1, le=256, description="Calls of the task model at once")
        ] = 8,
        heldout: Annotated[
            bool, Field(description="Keep a part of the conversations for an honest final score")
        ] = True,
        max_cost_usd: Annotated[
            Above0 | None, Field(description="Stop there; models of unknown price are refused")
        ] = None,
        max_seconds: Annotated[Above0 | None, Field(description="Of work; stop there")] = None,
        no_improvement_for: Annotated[
            AtLeast1 | None,
            Field(description="Stop after so many proposals in a row without a new best"),
        ] = None,
        fresh: Annotated[
            bool, Field(description="Take no answer that another run paid for")
        ] = False,
        new: Annotated[bool, Field(description="Start even if an equal run is there")] = False,
        install: Annotated[
            Literal["default", "auto", "ask", "off"],
            Field(description="At the end: install if better, keep it staged, or nothing"),
        ] = "default",
        install_agents: Annotated[
            tuple[str, ...], Field(min_length=1, max_length=10, description="Into these agents'")
        ] = ("claude-code",),
        install_scope: Annotated[Scope, Field(description="This project, or all")] = "project",
        min_gain: Annotated[float, Field(ge=0, le=1, description="Less gain is only staged")] = 0.0,
    ) -> StartResult:
        """Use this when a reward model has succeeded, to evolve a skill with GEPA from the
        reviewers' comments.

        Returns the run's id and its plan (conversations, proposals, calls) within a second; the run
        goes on in a process of its own. Show the plan to the person: it is what the run will spend.
        Then wait with get_run. Where your client says that it started a task instead, that task's
        id is the run's: get_run has the plan, and the result comes by itself. An equal run that is
        queued, running or has succeeded is returned instead (existing: true); answers that an
        earlier run paid for cost nothing. Keys of the models come from the environment of this
        server. By default the run replays the reward model's own conversations.
        """
        order = RunOrder(
            reward_model_id=reward_model_id,
            task_model=task_model,
            reflection_model=reflection_model.strip(),
            task_api_base=given(task_api_base),
            reflection_api_base=given(reflection_api_base),
            max_metric_calls=max_metric_calls,
            skill_name=given(skill_name),
            skill_description=given(skill_description),
            trace_ids=trace_ids or None,
            seed=seed,
            random_seed=random_seed,
            minibatch_size=minibatch_size,
            proposals_at_once=proposals_at_once,
            max_concurrency=max_concurrency,
            heldout=heldout,
            max_cost_usd=max_cost_usd,
            max_seconds=max_seconds,
            no_improvement_for=no_improvement_for,
            fresh=fresh,
            new=new,
            install=None if install == "default" else install,
            install_agents=install_agents,
            install_scope=install_scope,
            min_gain=min_gain,
        )
        return StartResult.of(self._backend().start_run(order))

    async def get_run(
        self,
        run_id: JobId,
        context: Context[Any, Any],
        wait_seconds: Annotated[
            int, Field(ge=0, le=MAX_WAIT_SECONDS, description="To wait for news at most")
        ] = 0,
        until: Annotated[
            Until, Field(description="What ends the wait: any news, or only the job's end")
        ] = "news",
        after_event: Annotated[
            AtLeast0,
            Field(description="last_event of the last answer: newer ones are news"),
        ] = 0,
    ) -> JobState:
        """Use this to see where a run or a training stands, or to wait for it: progress, scores,
        spend, the verdict when it has succeeded, the reason when it has failed.

        With wait_seconds it answers as soon as something happened (until="end": only when the job
        is over) and at the latest after that time; call it again until the status is succeeded,
        failed or cancelled.
        """
        watch = Watch(self._backend, run_id, after_event)
        sight = await wait_for_news(
            watch,
            wait_seconds,
            until,
            self._poll_seconds,
            context.report_progress,
            self._clock,
            known_events=after_event > 0,
        )
        return JobState.of(sight.job, sight.events, sight.last_event, self._clock())

    def cancel_run(self, run_id: JobId) -> JobChange:
        """Use this when the person wants a run or a training stopped, queued or running.

        It stops within 2 seconds. The candidates that a run has scored stay usable as a partial
        result, for list_candidates and install_skill; resume_run carries it on.
        """
        return JobChange.stopped(stop(self._backend(), run_id))

    def resume_run(self, run_id: RunId) -> JobChange:
        """Use this to carry on a failed run once the cause is mended, or a cancelled one.

        Nothing that was paid for is paid again. Then wait with get_run. A run whose process died
        is carried on by itself; a failed training is started again with train_reward_model.
        """
        return JobChange.resumed(self._backend().resume_run(run_id))

    def list_runs(self, limit: Limit = 20, offset: Offset = 0) -> RunList:
        """Use this to find a run by what it made, its scores and its state; newest first."""
        backend = self._backend()
        runs = backend.list_runs()
        places = queue_places(backend.at("local").list_reward_models(), runs)
        return RunList.of(runs, places, limit, offset, backend.unreached())
