"""Which reward model a run takes that names none, and what an import changes about it."""

from stash_mcp.cli.session import Session
from stash_mcp.models import JobStatus, RewardModel


def default_model(session: Session) -> RewardModel | None:
    """The newest one of the side that the setting names: nothing is done at Stash that was not
    asked for. One in training counts, and holds such a run up; a failed one does not.
    """
    side = session.backend.at(session.settings.backend)
    for model in side.list_reward_models():
        if not model.status.is_final or model.status is JobStatus.SUCCEEDED:
            return model
    return None


def takes(session: Session, imported: RewardModel) -> bool:
    """Whether a run that names none takes this one of the local library. Asks no other side."""
    if session.settings.backend != imported.backend:
        return False
    model = default_model(session)
    return model is not None and model.id == imported.id


def taken_in_words(session: Session, imported: RewardModel) -> str:
    if takes(session, imported):
        return (
            "Runs without --reward-model take this one from now on: it is the newest. To use "
            "another, name it with --reward-model."
        )
    return (
        "Runs without --reward-model do not take this one. To use it, add "
        f"--reward-model {imported.id}."
    )
