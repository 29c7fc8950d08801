"""A run or a training, found by its id: whoever waits for either asks in the same way."""

from stash_mcp.backends.base import Backend
from stash_mcp.errors import NotFoundError
from stash_mcp.models import RewardModel, Run

Job = Run | RewardModel


def find_job(backend: Backend, job_id: str) -> Job:
    """The run, or else the reward model, with this id."""
    try:
        return backend.get_run(job_id)
    except NotFoundError:
        pass
    try:
        return backend.get_reward_model(job_id)
    except NotFoundError as error:
        raise NotFoundError(
            f"There is no run and no reward model '{job_id}'.",
            "list_runs (or `stash-skills runs`) and list_reward_models (or `stash-skills models`) "
            "show the ids.",
        ) from error
