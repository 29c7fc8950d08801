"""`train`, `models`, `import-model`, `export-model`."""

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from stash_mcp.backends.base import TrainOrder
from stash_mcp.cli.default_model import taken_in_words, takes
from stash_mcp.cli.jobs import (
    NoWait,
    TracePatterns,
    finish,
    in_queue,
    places,
    print_model,
    say_unreached,
    status_word,
)
from stash_mcp.cli.outputs import Force, refuse_a_file_that_is_there
from stash_mcp.cli.printing import print_json, print_table, print_text
from stash_mcp.cli.session import Json, Where, session_of
from stash_mcp.models import DEFAULT_BASE_MODEL, DEFAULT_MAX_PAIRS, RewardModel
from stash_mcp.server.counting import count
from stash_mcp.server.wording import accuracy_in_short

ModelId = Annotated[str, typer.Argument(metavar="ID", help="Its id, as `models` shows it.")]


def register(app: typer.Typer) -> None:
    app.command("train")(train)
    app.command("models")(models)
    app.command("import-model")(import_model)
    app.command("export-model")(export_model)


def train(
    context: typer.Context,
    name: Annotated[str | None, typer.Option(help="To recognise it by.")] = None,
    base_model: Annotated[
        str, typer.Option(help="A model of the Hugging Face hub, or a folder.")
    ] = DEFAULT_BASE_MODEL,
    epochs: Annotated[int, typer.Option(min=1, max=100)] = 1,
    max_pairs: Annotated[
        int, typer.Option(min=2, help="Preference pairs at most.")
    ] = DEFAULT_MAX_PAIRS,
    learning_rate: Annotated[float, typer.Option(min=1e-9, max=1.0)] = 1e-5,
    trace: TracePatterns = None,
    training_config: Annotated[
        str | None, typer.Option(metavar="JSON", help="An object; of Stash alone.")
    ] = None,
    backend: Where = None,
    no_wait: NoWait = False,
    as_json: Json = False,
) -> None:
    """Train a reward model on the ratings, and follow it until it is done."""
    session = session_of(context)
    order = TrainOrder(
        name=name,
        base_model=base_model,
        epochs=epochs,
        max_pairs=max_pairs,
        learning_rate=learning_rate,
        trace_ids=tuple(trace) if trace else None,
        training_config=_object(training_config),
    )
    model = session.backend.at(backend).train_reward_model(order)
    pairs = "" if model.num_pairs is None else f" on {count(model.num_pairs, 'preference pair')}"
    print_text(
        session.err, f"Training {model.id}{pairs} from {count(model.trace_count, 'conversation')}."
    )
    finish(session, model, wait=not no_wait, as_json=as_json)


def _object(text: str | None) -> dict[str, Any] | None:
    if text is None:
        return None
    try:
        value = json.loads(text)
    except ValueError as error:
        raise typer.BadParameter(f"--training-config is no JSON: {error}.") from error
    if not isinstance(value, dict):
        raise typer.BadParameter('--training-config is no JSON object, such as {"epochs": 2}.')
    return value


def models(context: typer.Context, backend: Where = None, as_json: Json = False) -> None:
    """List the reward models, newest first, with the places in the queue of those that wait.

    Without --backend those of both, where there is a key for Stash.
    """
    session = session_of(context)
    side = session.backend.at(backend)
    listed = side.list_reward_models()
    say_unreached(session, side)
    queue = places(session.backend)
    if as_json:
        print_json(session.out, [in_queue(model, queue) for model in listed])
        return
    print_table(
        session.out,
        ("id", "name", "status", "base model", "pairs", "held-out accuracy", "created"),
        [_row(model, queue) for model in listed],
    )


def _row(model: RewardModel, queue: dict[str, int]) -> tuple[object, ...]:
    accuracy = None if model.metrics is None else accuracy_in_short(model.metrics)
    return (
        model.id,
        model.name,
        status_word(model, queue),
        model.base_model,
        model.num_pairs,
        accuracy,
        f"{model.created_at:%Y-%m-%d %H:%M}",
    )


def import_model(
    context: typer.Context,
    path: Annotated[
        Path, typer.Argument(metavar="PATH", help="A checkpoint's folder, or its tar.gz.")
    ],
    name: Annotated[str | None, typer.Option(help="To recognise it by.")] = None,
    as_json: Json = False,
) -> None:
    """Take a reward model that was trained elsewhere into the library.

    It is checked before anything of it is kept, and says whether runs take it by default.
    """
    session = session_of(context)
    model = session.backend.import_reward_model(path.absolute(), name)
    if as_json:
        rows = model.model_dump(mode="json")
        print_json(session.out, {**rows, "taken_by_default": takes(session, model)})
        return
    print_model(session, model)
    print_text(session.out, taken_in_words(session, model))


def export_model(
    context: typer.Context,
    reward_model_id: ModelId,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The tar.gz to write.")],
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Write a reward model's checkpoint as an archive.

    A file that is there is replaced only with --force.
    """
    session = session_of(context)
    refuse_a_file_that_is_there(file.absolute(), force=force)
    written = session.backend.export_reward_model(reward_model_id, file.absolute())
    if as_json:
        print_json(session.out, {"path": str(written)})
        return
    print_text(session.out, f"Wrote {written}.")
