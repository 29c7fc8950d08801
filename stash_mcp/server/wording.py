"""Plans and states in plain words, for the tools and the command alike.

`next_step` and those below it name the tools and are for them alone.
"""

from collections.abc import Mapping
from datetime import datetime

from stash_mcp.models import (
    BUILTIN_REFLECTION,
    InstallWish,
    JobStatus,
    Plan,
    RewardModel,
    Run,
    StopReason,
    TrainMetrics,
)
from stash_mcp.server.counting import count
from stash_mcp.server.jobs import Job
from stash_mcp.server.money import expected_cost

FEW_PAIRS = 20
EQUAL_RUN = "An equal run is there already;"
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
}


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
    return f"{task} and {plan.reflection_calls_at_most} of the reflection model."


def next_step(job: Job) -> str:
    """What whoever looks at this job does next."""
    return next_for_run(job) if isinstance(job, Run) else next_for_training(job)


def next_for_run(run: Run) -> str:
    match run.status:
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
        case JobStatus.SUCCEEDED:
            return (
                f'Read the candidates with list_candidates(run_id="{run.id}"), show the best and '
                f'its score to the person, and if they agree install_skill(run_id="{run.id}").'
            )
        case JobStatus.FAILED:
            return (
                f'Mend what the reason names, then carry on with resume_run(run_id="{run.id}"): '
                "what was paid for is not paid again."
            )
        case JobStatus.CANCELLED:
            return _after_cancelling(run)


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


def elapsed_seconds(job: Job, now: datetime) -> int | None:
    """Whole seconds since the job was begun, up to its end; None while it waits."""
    if job.started_at is None:
        return None
    return max(0, round(((job.finished_at or now) - job.started_at).total_seconds()))


def silent_seconds(job: Job, now: datetime) -> int | None:
    """Whole seconds since the worker of a running job gave a sign of life."""
    if job.status is not JobStatus.RUNNING or job.heartbeat_at is None:
        return None
    return max(0, round((now - job.heartbeat_at).total_seconds()))


def stop_in_words(reason: StopReason) -> str:
    """A sentence: why the search went no further."""
    return f"It ended because {_STOPS[reason]}."


def place_in_words(place: int) -> str:
    return f"place {place} in the queue"


def where_it_stands(job: Job, places: Mapping[str, int]) -> str | None:
    """Of a job that is not over: its place in the queue, or its phase."""
    if job.status.is_final:
        return None
    if job.id in places:
        return place_in_words(places[job.id])
    now = job.progress
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
            return (
                f"When the run ends, its skill is installed into {places} if it beats the seed by "
                f"more than {wish.min_gain:g} and nothing stands against it."
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
    if metrics.eval_pairs < FEW_PAIRS:
        return f"ranks {right} of {pairs} right, too few to tell"
    length = max(metrics.length_accuracy or 0.0, 1 - (metrics.length_accuracy or 0.0))
    return (
        f"ranks {metrics.eval_accuracy:.0%} of {pairs} right (chance 50 %, length alone "
        f"{length:.0%})"
    )


def accuracy_in_short(metrics: TrainMetrics) -> str | None:
    """`23 of 25 pairs, length alone 84%`."""
    if metrics.eval_accuracy is None:
        return None
    right = round(metrics.eval_accuracy * metrics.eval_pairs)
    length = max(metrics.length_accuracy or 0.0, 1 - (metrics.length_accuracy or 0.0))
    return f"{right} of {count(metrics.eval_pairs, 'pair')}, length alone {length:.0%}"
