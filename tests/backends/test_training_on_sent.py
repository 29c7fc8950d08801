"""A training at Stash on conversations that are named as they are called here."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from support.both_sides import jsonl, talk
from support.two_sides import TwoSides, two_sides

from stash_mcp.backends.base import AnnotationDraft, TrainOrder
from stash_mcp.backends.hybrid import Hybrid
from stash_mcp.backends.ids import shown
from stash_mcp.errors import InputError, NotFoundError
from stash_mcp.stash import open_client


@pytest.fixture
def both(tmp_path: Path) -> Iterator[TwoSides]:
    """lib-0 to lib-2 are at Stash, all with a comment."""
    with two_sides(tmp_path) as sides:
        ids = [f"lib-{number}" for number in range(3)]
        sides.stage.backend.import_traces(jsonl([talk(id) for id in ids]))
        for id in ids:
            note(sides, id, rating=1)
        push(sides)
        yield sides


def push(both: TwoSides, *, force: bool = False) -> None:
    with open_client(both.access()) as client:
        Hybrid(client, both.stage.settings, both.stage.clock).push(force=force)


def note(both: TwoSides, id: str, **said: object) -> str:
    return both.stage.backend.annotate(AnnotationDraft(trace_id=id, **said)).id


def trained_on(both: TwoSides, *ids: str) -> list[str]:
    """What Stash was told to train on, as the conversations are called here."""
    model = both.backend.at("stash").train_reward_model(TrainOrder(trace_ids=ids))
    assert model.backend == "stash"
    [job] = both.stash.world.models.values()
    names = {trace.id: trace.external_id for trace in both.stash.world.traces.values()}
    return sorted(str(names[id]) for id in job.given["trace_ids"])


def remote_id(both: TwoSides, external_id: str) -> str:
    traces = both.stash.world.traces.values()
    return next(trace.id for trace in traces if trace.external_id == external_id)


def refused(both: TwoSides, *ids: str) -> str:
    with pytest.raises(InputError) as caught:
        both.backend.at("stash").train_reward_model(TrainOrder(trace_ids=ids))
    assert both.stash.world.models == {}
    return str(caught.value)


@pytest.mark.parametrize(
    ("ids", "names"),
    [
        (["lib-*"], ["lib-0", "lib-1", "lib-2"]),
        (["lib-1"], ["lib-1"]),
        (["lib-1", "lib-[12]"], ["lib-1", "lib-2"]),
    ],
)
def test_ids_and_patterns_of_the_library_name_what_was_sent(
    both: TwoSides, ids: list[str], names: list[str]
) -> None:
    assert trained_on(both, *ids) == names


def test_ids_of_both_sides_go_together_each_once(both: TwoSides) -> None:
    there = shown(remote_id(both, "lib-0"))
    model = both.backend.train_reward_model(TrainOrder(trace_ids=(there, "lib-[01]")))
    assert (model.backend, model.trace_count) == ("stash", 2)


def test_what_was_pulled_is_known_there_by_its_id_here(tmp_path: Path) -> None:
    with two_sides(tmp_path) as both, open_client(both.access()) as client:
        client.import_traces(jsonl([talk("theirs")]).decode())
        Hybrid(client, both.stage.settings, both.stage.clock).pull()
        assert trained_on(both, "theirs") == ["theirs"]


def test_what_is_not_there_yet_is_named(both: TwoSides) -> None:
    both.stage.backend.import_traces(jsonl([talk("lib-new")]))
    words = refused(both, "lib-*")
    assert "lib-new" in words
    assert "lib-0" not in words
    assert "stash-skills push" in words


def test_what_was_deleted_there_is_named_by_its_id_here(both: TwoSides) -> None:
    del both.stash.world.traces[remote_id(both, "lib-1")]
    assert "holds: lib-1." in refused(both, "lib-*")


@pytest.mark.parametrize("change", ["steps", "comment", "flag"])
def test_what_is_another_thing_here_by_now_is_refused_until_it_is_pushed(
    both: TwoSides, change: str
) -> None:
    if change == "steps":
        both.stage.backend.import_traces(jsonl([talk("lib-1", "Hello", "Changed.")]))
    elif change == "comment":
        note(both, "lib-1", comment="One more.")
    else:
        [known] = both.stage.backend.get_trace("lib-1").annotations
        both.stage.backend.flag_annotation(known.id, None, flagged=True)
    words = refused(both, "lib-*")
    assert "since they went to Stash: lib-1." in words
    assert "stash:..." in words
    push(both)
    assert trained_on(both, "lib-*") == ["lib-0", "lib-1", "lib-2"]


def test_a_comment_that_was_deleted_there_holds_up_nothing(both: TwoSides) -> None:
    both.stash.world.annotations.popitem()
    push(both)
    assert trained_on(both, "lib-*") == ["lib-0", "lib-1", "lib-2"]


def test_an_unknown_id_is_said_to_be_unknown(both: TwoSides) -> None:
    with pytest.raises(NotFoundError, match="no trace 'nope-\\*'"):
        both.backend.at("stash").train_reward_model(TrainOrder(trace_ids=("nope-*",)))


def test_without_a_side_ids_of_the_library_stay_here(both: TwoSides) -> None:
    both.stage.conversations()
    asked = len(both.stash.asked)
    assert both.backend.train_reward_model(TrainOrder(trace_ids=("c-*",))).backend == "local"
    assert len(both.stash.asked) == asked
