"""Orders as Stash takes them; what it cannot do is refused by name before anything is sent."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from stash_mcp.backends.base import RunOrder, TrainOrder
from stash_mcp.backends.ids import is_stash, raw
from stash_mcp.backends.stash.reach import can_reach
from stash_mcp.errors import InputError, UnsupportedError
from stash_mcp.models import AGENT_REFLECTION, BUILTIN_REFLECTION, CLAUDE_CODE
from stash_mcp.stash.sent import RunStart, Training
from stash_mcp.stash.shapes import RunShape

DEFAULT_METRIC_CALLS = 40
DEFAULT_REFLECTION = "anthropic/claude-sonnet-5"
"""What Stash takes where nothing is given."""
# Fields of a run's order that Stash has no place for, and why not.
_NOT_AT_STASH = {
    "reflection_api_base": "it calls the reflection model by its name alone",
    "skill_name": "it makes the name up itself",
    "skill_description": "it makes the description up itself",
    "trace_ids": "it takes the reward model's own conversations",
    "random_seed": "it draws by itself",
    "seed": "it starts from the description",
    "minibatch_size": "it has a size of its own",
    "proposals_at_once": "it makes one after the other",
    "max_concurrency": "it has a pace of its own",
    "max_cost_usd": "it does not tell what a run costs",
    "max_seconds": "it has no such cap",
    "no_improvement_for": "it has no such cap",
    "fresh": "what it keeps of answers is its own affair",
}


def run_start(order: RunOrder, stash_host: str) -> RunStart:
    """Raises UnsupportedError with every field that Stash cannot take.

    stash_host: where Stash itself is; one in a network of its own reaches what is in there.
    """
    given = [name for name in _NOT_AT_STASH if _is_given(order, name)]
    if given:
        reasons = "; ".join(f"{name}: {_NOT_AT_STASH[name]}" for name in given)
        raise UnsupportedError(
            f"Stash cannot take {', '.join(given)} ({reasons}).",
            "Leave that out; or do the run on this machine, with a reward model of this machine "
            "(stash-skills pull). Nothing was sent.",
        )
    _check_model("task_model", order.task_model)
    _check_model("reflection_model", order.reflection_model)
    _check_reachable(order.task_api_base, stash_host)
    return RunStart(
        reward_model_id=raw(order.reward_model_id),
        task_model=order.task_model,
        task_api_base=order.task_api_base,
        reflection_model=order.reflection_model or None,
        max_metric_calls=order.max_metric_calls,
    )


def is_equal(start: RunStart, run: RunShape) -> bool:
    """Whether the run does what `start` asks for."""
    return (
        run.reward_model_id == start.reward_model_id
        and run.task_model == start.task_model
        and run.task_api_base == start.task_api_base
        and run.reflection_model == (start.reflection_model or DEFAULT_REFLECTION)
        and run.max_metric_calls == (start.max_metric_calls or DEFAULT_METRIC_CALLS)
    )


def training(order: TrainOrder, name: str, trace_ids: Sequence[str], project_dir: Path) -> Training:
    """trace_ids: Stash's own."""
    if order.learning_rate != TrainOrder().learning_rate:
        raise UnsupportedError(
            "Stash has no learning_rate of its own.",
            "Leave it out, or give what its training takes as training_config. Nothing was sent.",
        )
    if (project_dir / Path(order.base_model).expanduser()).is_dir():
        raise UnsupportedError(
            f"'{order.base_model}' is a folder of this machine, which Stash does not see.",
            "Name a model of the Hugging Face hub, or train on this machine. Nothing was sent.",
        )
    return Training(
        name=name,
        trace_ids=tuple(trace_ids),
        base_model=order.base_model,
        epochs=order.epochs,
        max_pairs=order.max_pairs,
        training_config=order.training_config,
    )


def trained_on(trace_ids: Iterable[str]) -> list[str]:
    """Stash's ids for these; InputError for conversations of this machine and for patterns."""
    found = []
    for id in trace_ids:
        if not is_stash(id):
            raise InputError(
                f"'{id}' is a conversation of this machine, and Stash trains on what it holds.",
                "Send it there first (stash-skills push, or import with backend=stash), or train "
                "with backend=local. Nothing was sent.",
            )
        if any(character in id for character in "*?["):
            raise InputError(
                f"'{id}' is a pattern, and the ids of Stash say nothing of their conversations.",
                "Name the ids, or leave trace_ids out to take all of Stash. Nothing was sent.",
            )
        found.append(raw(id))
    return list(dict.fromkeys(found))


def _is_given(order: RunOrder, name: str) -> bool:
    return bool(getattr(order, name) != RunOrder.model_fields[name].default)


def _check_model(name: str, model: str) -> None:
    own = {AGENT_REFLECTION, BUILTIN_REFLECTION}
    if model in own or model.startswith(CLAUDE_CODE):
        raise UnsupportedError(
            f"{name} '{model}' works on this machine only; Stash calls hosted models.",
            "Name one by its LiteLLM name, such as anthropic/claude-sonnet-5. Nothing was sent.",
        )


def _check_reachable(url: str | None, stash_host: str) -> None:
    if url is not None and not can_reach(stash_host, url):
        raise UnsupportedError(
            f"Stash cannot reach a server at '{url}'.",
            "Give one that the internet reaches, or do the run on this machine. Nothing was sent.",
        )
