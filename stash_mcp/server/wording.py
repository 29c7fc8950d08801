"""Plans, states and times in plain words, for the tools and the command alike.

`next_for_run` and `next_for_training` name the tools and are for them alone.
"""

from datetime import datetime

from stash_mcp.models import BUILTIN_REFLECTION, JobStatus, Plan, RewardModel, Run
from stash_mcp.server.jobs import Job


def plan_in_words(plan: Plan, reflection_model: str) -> list[str]:
    """One sentence for each thing that a run will do and spend."""
    sentences = [_conversations(plan)]
    sentences += [f"{skipped.count} left out: {skipped.reason}." for skipped in plan.skipped]
    sentences += [_proposals(plan), _calls(plan, reflection_model), *plan.notes]
    return sentences


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


def next_for_run(run: Run) -> str:
    """What whoever looks at this run does next, in the names of the tools."""
    match run.status:
        case JobStatus.QUEUED | JobStatus.RUNNING:
            return (
                f'Wait with get_run(run_id="{run.id}", wait_seconds=50). It goes on if this '
                "session ends."
            )
        case JobStatus.SUCCEEDED:
            return (
                f'Read the candidates with list_candidates(run_id="{run.id}"), show the best and '
                f'its score to the person, and if they agree install_skill(run_id="{run.id}").'
            )
        case JobStatus.FAILED:
            return "Mend what the reason names and start again with start_gepa_run."
        case JobStatus.CANCELLED:
            return "It was cancelled. Start again with start_gepa_run."


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


def duration(seconds: float) -> str:
    """`48 s`, `3 min 5 s`, `2 h 10 min`."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


def count(number: int, noun: str) -> str:
    """`1 call`, `2 calls`."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"
