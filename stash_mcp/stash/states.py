"""Why a job of Stash has no result, by its state."""

from stash_mcp.errors import StashNotReadyError
from stash_mcp.stash.shapes import JobShape
from stash_mcp.stash.wording import shown


def not_there(job: JobShape, noun: str, missing: str) -> StashNotReadyError | None:
    """The error for a job without the result that was asked for; None for one that succeeded."""
    if job.status == "succeeded":
        return None
    if job.status == "failed":
        reason = f": {shown(job.error, ())}" if job.error else ""
        return StashNotReadyError(
            f"There is no {missing}, as {noun} {job.id} failed{reason}.",
            "Correct what that says and start another.",
        )
    return StashNotReadyError(
        f"There is no {missing} yet, as {noun} {job.id} is {job.status}.",
        "Ask for it again when it has succeeded.",
    )


def not_trained(model: JobShape) -> StashNotReadyError:
    """For a run that was refused because its reward model had not finished."""
    return not_there(model, "reward model", "run of it") or StashNotReadyError(
        f"Reward model {model.id} was in training until just now.", "Start the run again."
    )
