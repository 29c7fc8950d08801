"""A run of Stash, measured again on this machine with the methods of a run that was done here."""

from dataclasses import dataclass
from typing import Protocol

from stash_mcp.backends.base import RunOrder, StartedRun
from stash_mcp.backends.hybrid.syncing import Hybrid
from stash_mcp.backends.ids import raw, shown
from stash_mcp.errors import InputError, NotFoundError, StashAnswerError
from stash_mcp.models import RemoteResult, Skill
from stash_mcp.skills.document import parse
from stash_mcp.stash.shapes import RunShape
from stash_mcp.stash.states import not_there


class Measurer(Protocol):
    def measure(self, measured: RemoteResult, order: RunOrder) -> StartedRun: ...


@dataclass(frozen=True)
class Rescore:
    """What a person asks for. task_model: "" takes that of the run; its key is this machine's."""

    run_id: str
    task_model: str = ""
    task_api_base: str | None = None
    fresh: bool = False
    new: bool = False


def rescore(hybrid: Hybrid, local: Measurer, asked: Rescore) -> StartedRun:
    """Bring the run's reward model and conversations here, and queue the measure of its seed and
    its best. Stash is told nothing.
    """
    run = hybrid.client.get_run(raw(asked.run_id))
    error = not_there(run, "run", "result")
    if error is not None:
        raise error
    seed, best = _skill(run, run.seed_skill), _skill(run, run.best_skill)
    if seed == best:
        raise InputError(
            f"The run {shown(run.id)} ended with its seed as the best: nothing to compare.",
            "Start another run at Stash, or one here.",
        )
    _refuse_its_server(run, asked)
    trace_ids = hybrid.client.get_reward_model(run.reward_model_id).trace_ids or ()
    report = hybrid.pull(reward_model=run.reward_model_id)
    if report.reward_model_id is None or not hybrid.local_ids(trace_ids):
        raise NotFoundError(
            f"None of the conversations that {shown(run.id)} replayed is at Stash any more.",
            "Without them its skill cannot be measured again.",
        )
    measured = RemoteResult(
        run_id=shown(run.id),
        seed=seed,
        best=best,
        seed_score=_score(run, run.seed_score),
        best_score=_score(run, run.best_score),
        trace_ids=len(trace_ids),
    )
    order = RunOrder(
        reward_model_id=report.reward_model_id,
        task_model=asked.task_model or run.task_model,
        task_api_base=asked.task_api_base,
        fresh=asked.fresh,
        new=asked.new,
    )
    return local.measure(measured, order)


def _refuse_its_server(run: RunShape, asked: Rescore) -> None:
    """A key of this machine goes to no server that only Stash names."""
    if run.task_api_base is None or asked.task_model or asked.task_api_base:
        return
    raise InputError(
        f"The run's task model {run.task_model} is behind a server of its own.",
        "Name that server here too (--task-api-base), or another task model (--task-model).",
    )


def _skill(run: RunShape, text: str | None) -> Skill:
    if text is None:
        raise _without(run)
    return parse(text)


def _score(run: RunShape, score: float | None) -> float:
    if score is None:
        raise _without(run)
    return score


def _without(run: RunShape) -> StashAnswerError:
    return StashAnswerError(
        f"Stash says that {shown(run.id)} succeeded, and gives no whole result of it.",
        "Try again; if it stays, report it to Stash.",
    )
