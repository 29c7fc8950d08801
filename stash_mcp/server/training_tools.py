"""Tools for reward models."""

from typing import Annotated

from mcp.server.mcpserver.tools import Tool
from pydantic import Field, JsonValue

from stash_mcp.backends.base import TrainOrder
from stash_mcp.models import DEFAULT_BASE_MODEL, DEFAULT_MAX_PAIRS
from stash_mcp.server.jobs import queue_places
from stash_mcp.server.opening import LazyBackend
from stash_mcp.server.parameters import Limit, Offset, TraceIds, Where, given, make_tool, side
from stash_mcp.server.training_results import ModelList, TrainResult

Config = Annotated[dict[str, JsonValue], Field(description="Of Stash's training, at Stash alone")]


class TrainingTools:
    def __init__(self, backend: LazyBackend) -> None:
        self._backend = backend

    def tools(self) -> list[Tool]:
        return [
            make_tool(self.train_reward_model, "Train a reward model", calls_models=True),
            make_tool(
                self.list_reward_models, "List reward models", reads_only=True, calls_models=True
            ),
        ]

    def train_reward_model(
        self,
        name: Annotated[str, Field(max_length=200, description="To recognise it by")] = "",
        base_model: Annotated[
            str, Field(min_length=1, description="A model of the Hugging Face hub, or a folder")
        ] = DEFAULT_BASE_MODEL,
        epochs: Annotated[int, Field(ge=1, le=100)] = 1,
        max_pairs: Annotated[
            int, Field(ge=2, le=1_000_000, description="Preference pairs at most")
        ] = DEFAULT_MAX_PAIRS,
        learning_rate: Annotated[float, Field(gt=0, le=1)] = 1e-5,
        trace_ids: TraceIds = (),
        training_config: Config = {},  # noqa: B006 - never changed
        backend: Where = "default",
    ) -> TrainResult:
        """Use this once conversations are rated both up and down, to train the model that scores
        replies as the reviewers would.

        Returns an id at once; the training goes on in a process of its own, for minutes or hours by
        the size of the base model. Wait for it with get_run and that id; where your client says
        that it started a task instead, the result comes by itself. By default it learns from every
        conversation of the library. Needs the optional part 'local' of the installation.
        """
        order = TrainOrder(
            name=given(name),
            base_model=base_model,
            epochs=epochs,
            max_pairs=max_pairs,
            learning_rate=learning_rate,
            trace_ids=trace_ids or None,
            training_config=training_config or None,
        )
        return TrainResult.of(self._backend().at(side(backend)).train_reward_model(order))

    def list_reward_models(
        self, limit: Limit = 20, offset: Offset = 0, backend: Where = "default"
    ) -> ModelList:
        """Use this to find a trained reward model for start_gepa_run, or to compare them: newest
        first, with how many held-out pairs each ranks right. Of both backends by default.
        """
        opened = self._backend()
        asked = opened.at(side(backend))
        models = asked.list_reward_models()
        missing = asked.unreached()
        places = queue_places(models, opened.known_runs())
        return ModelList.of(models, places, limit, offset, missing)
