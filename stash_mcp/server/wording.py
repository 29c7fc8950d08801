"""Plans and states in plain words, for the tools and the command alike.

`next_step` and those below it name the tools and are for them alone.
"""

from collections.abc import Mapping
from datetime import UTC, datetime

from stash_mcp.models import (
    AGENT_REFLECTION,
    BUILTIN_REFLECTION,
    InstallWish,
    JobStatus,
    Plan,
    Reflection,
    RewardModel,
    Run,
    StopReason,
    TrainMetrics,
)
from stash_mcp.server.counting import count
from stash_mcp.server.jobs import Job
from stash_mcp.server.money import expected_cost

FEW_PAIRS = 20
AT_STASH = "at Stash, which tells no progress"
EQUAL_RUN = "An equal run is there already;"
FAILED_PARTIAL = (
    "The run failed before its end, so this is of what was scored until then, and nothing was "
    "measured on held-out conversations."
)
PARTIAL = (
    "A partial result: the run was stopped early, so this is of what was scored until then, and "
    "nothing was measured on held-out conversations."
)
_STOPS: dict[StopReason, str] = {
    "budget": "the budget of metric calls was used up",
    "cost": "max_cost_usd was reached",
    "time": "max_seconds of work were reached",
    "no_improvement_for": "as many proposals as no_improvement_for allows brought no new best",
    "perfect": "a candidate scored as high as can be",
    "cancelled": "it was cancelled",
    "measured": "seed and best of Stash's run were measured; nothing was searched for here",
}


def equal_run_in_words(run: Run, another: str) -> str:
    """That this run is there already; `another`: what starts another one. Of one of Stash that is
    over also when it ended, as its answer may be out of date.
    """
    if run.backend == "local" or run.finished_at is None:
        return f"{EQUAL_RUN} {another} starts another."
    return (
        f"{EQUAL_RUN} it ended on {run.finished_at.astimezone(UTC):%Y-%m-%d at %H:%M} UTC, and "
        "nothing was started or paid for. Whether comments were added since then Stash does not "
        f"tell: if so, {another} starts another run, with them."
    )


def start_in_words(run: Run) -> list[str]:
    """What a run will do and spend, as far as that is known."""
    request = run.request
    if run.plan is not None:
        return plan_in_words(run.plan, request.reflection_model)
    return [
        f"Stash does it: a budget of {request.max_metric_calls} metric calls, replies by "
        f"{request.task_model}, the skill by {request.reflection_model}.",
        "It takes all of the reward model's conversations and holds none out, so its numbers are "
        "in-sample; it tells neither progress nor cost, and cannot be stopped.",
    ]


def plan_in_words(plan: Plan, reflection_model: str) -> list[str]:
    """One sentence for each thing that a run will do and spend."""
    sentences = [_conversations(plan)]
    sentences += [f"{skipped.count} left out: {skipped.reason}." for skipped in plan.skipped]
    sentences += [_proposals(plan), _calls(plan, reflection_model), expected_cost(plan)]
    return [*sentences, *plan.notes]


def _conversations(plan: Plan) -> str:
    words = f"{count(plan.examples, 'conversation')} to optimise on"
    if plan.heldout_examples:
        words += f", {plan.heldout_examples} more held out for the final measure"
    return f"{words}; {plan.commented_examples} of all have comments."


def _proposals(plan: Plan) -> str:
    low, high = plan.proposals_at_worst, plan.proposals_at_best
    proposals = count(high, "proposal") if low == high else f"{low} to {high} proposals"
    return f"A budget of {plan.max_metric_calls} metric calls, enough for {proposals}."


def _calls(plan: Plan, reflection_model: str) -> str:
    task = (
        f"At most {count(plan.task_calls_at_most, 'call')} of the task model "
        f"(about {plan.prompt_tokens_estimate:,} tokens of input)"
    )
    if reflection_model == BUILTIN_REFLECTION:
        return f"{task}; the built-in reflection calls no model."
    if reflection_model == AGENT_REFLECTION:
        reflections = count(plan.reflection_calls_at_most, "reflection")
        return f"{task}; at most {reflections} are asked of the agent that is connected."
    return f"{task} and {plan.reflection_calls_at_most} of the reflection model."


def next_step(job: Job) -> str:
    """What whoever looks at this job does next."""
    return next_for_run(job) if isinstance(job, Run) else next_for_training(job)


def next_for_run(run: Run) -> str:
    match run.status:
        case JobStatus.QUEUED | JobStatus.RUNNING if run.as_seen:
            return (
                f'Look again later with get_run(run_id="{run.id}"), with the STASH_URL and the key '
                "that it was started with."
            )
        case JobStatus.QUEUED | JobStatus.RUNNING if run.reflections_waiting:
            return (
                f'It {reflections_in_words(run)}: read get_reflection(run_id="{run.id}"), write '
                "what it asks for and hand it in with submit_reflection. The run then goes on."
            )
        case JobStatus.QUEUED | JobStatus.RUNNING:
            return (
                f'Wait with get_run(run_id="{run.id}", wait_seconds=50). It goes on if this '
                "session ends."
            )
        case JobStatus.SUCCEEDED if is_no_gain(run.verdict):
            return (
                "Tell the person that there is nothing to install; more comments and ratings, or a "
                "stronger reflection model, may help."
            )
        case JobStatus.SUCCEEDED if run.install_state == "installed":
            return (
                "Its skill is installed already: tell the person where, and what it gained. "
                "rollback_skill or uninstall_skill takes it back."
            )
        case JobStatus.SUCCEEDED:
            return (
                f'Read the candidates with list_candidates(run_id="{run.id}"), show the best and '
                f'its score to the person, and if they agree install_skill(run_id="{run.id}").'
            )
        case JobStatus.FAILED if run.backend == "stash":
            return "Mend what the reason names, then start another with start_gepa_run."
        case JobStatus.FAILED:
            return (
                f'Mend what the reason names, then carry on with resume_run(run_id="{run.id}"): '
                f"what was paid for is not paid again.{_of_failed(run)}"
            )
        case JobStatus.CANCELLED:
            return _after_cancelling(run)


def reflections_in_words(run: Run) -> str:
    """`waits for 2 reflections`."""
    return f"waits for {count(len(run.reflections_waiting), 'reflection')}"


def submit_with(reflection: Reflection) -> str:
    """How an agent answers this one."""
    answer = "name=..., description=..." if reflection.kind == "identity" else "body=..."
    return (
        f'Answer it with submit_reflection(run_id="{reflection.run_id}", '
        f"number={reflection.number}, {answer})."
    )


def _of_failed(run: Run) -> str:
    if run.best_candidate is None:
        return ""
    return " list_candidates has what it scored; install_skill takes one by its number."


def _after_cancelling(run: Run) -> str:
    carry_on = f'resume_run(run_id="{run.id}") carries it on and pays nothing again.'
    if not run.partial:
        return f"It was cancelled before anything was scored; {carry_on}"
    return f"list_candidates and install_skill take its candidates so far; {carry_on}"


def next_for_training(model: RewardModel) -> str:
    match model.status:
        case JobStatus.QUEUED | JobStatus.RUNNING:
            return (
                f'Wait with get_run(run_id="{model.id}", wait_seconds=50); it takes the id of a '
                "training too. The training goes on if this session ends."
            )
        case JobStatus.SUCCEEDED:
            return f'Start a run with start_gepa_run(reward_model_id="{model.id}", task_model=...).'
        case JobStatus.FAILED:
            return "Mend what the reason names and train again with train_reward_model."
        case JobStatus.CANCELLED:
            return "It was cancelled. Train again with train_reward_model."


def partial_in_words(run: Run) -> str | None:
    """What to know of a candidate of a run that did not come to its end; None if it did."""
    if run.status is JobStatus.FAILED:
        return FAILED_PARTIAL
    return PARTIAL if run.partial else None


def elapsed_seconds(job: Job, now: datetime) -> int | None:
    """Whole seconds since the job was begun, up to its end; None while it waits."""
    if job.started_at is None:
        return None
    return max(0, round(((job.finished_at or now) - job.started_at).total_seconds()))


def silent_seconds(job: Job, now: datetime) -> int | None:
    """Whole seconds since the worker of a running job gave a sign of life."""
    if job.status is not JobStatus.RUNNING or job.heartbeat_at is None:
        return None
    if isinstance(job, Run) and job.reflections_waiting:
        # It may be parked, and then no worker has it.
        return None
    return max(0, round((now - job.heartbeat_at).total_seconds()))


def stop_in_words(reason: StopReason) -> str:
    """A sentence: why the search went no further."""
    return f"It ended because {_STOPS[reason]}."


def ending_of_run(run: Run) -> str:
    """How a run that has succeeded came out: its own verdict first, unchanged."""
    sentences = [run.verdict or "It has no verdict."]
    if run.best_candidate is not None:
        sentences.append(f"The best candidate is number {run.best_candidate}.")
    if run.stop_reason is not None:
        sentences.append(stop_in_words(run.stop_reason))
    return " ".join([*sentences, run.install_note or ""]).rstrip()


def ending_of_training(model: RewardModel) -> str:
    """How well a reward model whose training has succeeded ranks."""
    if model.metrics is None:
        return "How well it ranks replies is not known."
    return f"The reward model: {accuracy_in_words(model.metrics)}."


def place_in_words(place: int) -> str:
    return f"place {place} in the queue"


def where_it_stands(job: Job, places: Mapping[str, int]) -> str | None:
    """Of a job that is not over: its place in the queue, or its phase."""
    if job.status.is_final:
        return None
    if job.id in places:
        return place_in_words(places[job.id])
    if isinstance(job, Run) and job.reflections_waiting:
        return reflections_in_words(job)
    now = job.progress
    if now is None:
        return AT_STASH
    return f"{now.phase} {now.done}/{now.total}" if now.total else now.phase


def at_the_end(wish: InstallWish) -> str:
    """What happens to the skill when the run ends."""
    places = ", ".join(target.skills_dir for target in wish.targets)
    match wish.mode:
        case "off":
            return "The skill is not installed by itself when the run ends."
        case "ask":
            return f"When the run ends, its skill waits for a word before it goes into {places}."
        case "auto":
            enough = f" by {wish.min_gain:g} or more" if wish.min_gain else ""
            return (
                f"When the run ends, its skill is installed into {places} if it beats the seed"
                f"{enough} and nothing stands against it."
            )


def is_no_gain(verdict: str | None) -> bool:
    """Whether the verdict says that the best is no better than the seed, or worse."""
    return (verdict or "").startswith(("No improvement:", "Worse:"))


def accuracy_in_words(metrics: TrainMetrics) -> str:
    """How well the reward model ranks what it did not see, beside what length alone would do."""
    if metrics.eval_accuracy is None:
        reason = metrics.eval_accuracy_reason or "no pairs could be held out"
        return f"no held-out accuracy: {reason}"
    pairs = count(metrics.eval_pairs, "held-out pair")
    right = round(metrics.eval_accuracy * metrics.eval_pairs)
    length = metrics.by_length
    if metrics.eval_pairs < FEW_PAIRS:
        alone = "" if length is None else f" (length alone {length:.0%})"
        return f"ranks {right} of {pairs} right{alone}, too few to tell"
    alone = "" if length is None else f", length alone {length:.0%}"
    return f"ranks {metrics.eval_accuracy:.0%} of {pairs} right (chance 50 %{alone})"


def accuracy_in_short(metrics: TrainMetrics) -> str | None:
    """`23 of 25 pairs, length alone 84%`."""
    if metrics.eval_accuracy is None:
        return None
    right = round(metrics.eval_accuracy * metrics.eval_pairs)
    length = metrics.by_length
    alone = "" if length is None else f", length alone {length:.0%}"
    return f"{right} of {count(metrics.eval_pairs, 'pair')}{alone}"
