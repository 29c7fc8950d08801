"""What tests of the hosted service's client ask for again and again."""

import json
from collections.abc import Callable
from dataclasses import dataclass

from stand_in_stash import StandIn

from stash_mcp.settings import StashAccess
from stash_mcp.stash import Limits, StashClient, open_client
from stash_mcp.stash.sent import AnnotationChange, AnnotationStart, RunStart, Training
from stash_mcp.stash.shapes import ImportShape, RunShape


def client_of(stash: StandIn, key: str, limits: Limits = Limits()) -> StashClient:  # noqa: B008
    access = StashAccess(stash.base_url, key, "a test", "a test")
    return open_client(access, limits, sleep=lambda seconds: None)


def conversations(count: int, *, prefix: str = "c") -> str:
    """JSONL of `count` conversations with ids."""
    return "\n".join(
        json.dumps(
            {
                "id": f"{prefix}{number}",
                "title": f"Order {number}",
                "steps": [
                    {"role": "user", "content": f"Where is order {number}?"},
                    {"role": "assistant", "content": f"Order {number} is on its way."},
                ],
            }
        )
        for number in range(count)
    )


def commented(client: StashClient) -> ImportShape:
    """Three conversations: one liked, two not."""
    imported = client.import_traces(conversations(3))
    liked, *others = imported.trace_ids
    client.annotate(liked, AnnotationStart(rating=1))
    for id in others:
        client.annotate(id, AnnotationStart(rating=-1, comment="Say when it arrives."))
    return imported


def trained(client: StashClient) -> str:
    """The id of a reward model that has succeeded."""
    model = client.train(Training(name="tone", trace_ids=commented(client).trace_ids))
    while not client.get_reward_model(model.id).is_final:
        pass
    return model.id


def evolved(client: StashClient) -> RunShape:
    run = client.start_run(RunStart(reward_model_id=trained(client)))
    while not (run := client.get_run(run.id)).is_final:
        pass
    return run


@dataclass(frozen=True)
class Known:
    """Ids of what is there."""

    trace: str
    annotation: str
    model: str
    run: str


def furnished(client: StashClient) -> Known:
    run = evolved(client)
    page = client.list_traces(limit=1)
    annotation = client.annotate(page.traces[0].id, AnnotationStart(comment="Fine."))
    return Known(page.traces[0].id, annotation.id, run.reward_model_id, run.id)


def every_call(known: Known) -> dict[str, Callable[[StashClient], object]]:
    """Each call of the client, by name."""
    return {
        "formats": lambda c: c.formats(),
        "import_traces": lambda c: c.import_traces(conversations(1)),
        "list_traces": lambda c: c.list_traces(),
        "get_trace": lambda c: c.get_trace(known.trace),
        "annotate": lambda c: c.annotate(known.trace, AnnotationStart(rating=1)),
        "change_annotation": lambda c: c.change_annotation(
            known.annotation, AnnotationChange(label_error=True)
        ),
        "export_traces": lambda c: list(c.export_traces()),
        "export_annotations": lambda c: list(c.export_annotations()),
        "export_pairs": lambda c: list(c.export_pairs()),
        "list_reward_models": lambda c: c.list_reward_models(),
        "get_reward_model": lambda c: c.get_reward_model(known.model),
        "train": lambda c: c.train(Training(name="again", trace_ids=(known.trace,))),
        "start_run": lambda c: c.start_run(RunStart(reward_model_id=known.model)),
        "get_run": lambda c: c.get_run(known.run),
        "list_runs": lambda c: c.list_runs(),
        "skill": lambda c: c.skill(known.run),
        "delete_annotation": lambda c: c.delete_annotation(known.annotation),
        "delete_trace": lambda c: c.delete_trace(known.trace),
    }
