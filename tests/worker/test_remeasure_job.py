"""A run of the stand-in of Stash measured again: its model and conversations are brought here, and
a real worker asks a real model server."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from stand_in_stash import StandIn, stand_in
from support.both_sides import BothSides
from support.model_server import ModelServer, Reply, Request, fails, model_server, says
from support.sectioned import save_sectioned
from support.staging import Stage
from support.tiny_jobs import BAD, GOOD, talks, tiny_checkpoint

from stash_mcp.backends.hybrid import Rescore, rescore
from stash_mcp.checkpoints import pack
from stash_mcp.errors import InputError, NotFoundError, StashNotReadyError
from stash_mcp.models import JobStatus, Run
from stash_mcp.stash.sent import AnnotationStart, RunStart, Training
from stash_mcp.worker.drain import drain

COUNT = 6
RULE = "Ask for the order number first."


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory, base: Path) -> bytes:
    folder = tmp_path_factory.mktemp("trained")
    pack(tiny_checkpoint(folder / "model", base), folder / "model.tar.gz")
    return (folder / "model.tar.gz").read_bytes()


@pytest.fixture
def stash() -> Iterator[StandIn]:
    with stand_in() as running:
        yield running


@pytest.fixture
def sides(stage: Stage, tmp_path: Path, stash: StandIn, archive: bytes) -> Iterator[BothSides]:
    """With a Stash that keeps differing conversations, and this model of them."""
    stash.storage.data = archive
    both = BothSides(tmp_path / "both", stash)
    yield both
    both.close()


def obedient(request: Request) -> Reply:
    return says(GOOD if "order number" in request["messages"][0]["content"] else BAD)


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with model_server(obedient) as served:
        yield served


def run_of(sides: BothSides, *, alike: bool = False, **start: object) -> str:
    """A finished run of Stash on COUNT conversations; `alike`: that all ask the same."""
    rows = [json.loads(line) for line in talks(COUNT).splitlines()]
    for number, row in enumerate(rows):
        row["steps"][0]["content"] += "" if alike else f" {number}"
    with sides.client() as client:
        data = "\n".join(json.dumps(row) for row in rows)
        ids = client.import_traces(data).trace_ids
        for number, id in enumerate(ids):
            rating = -1 if number % 2 else 1
            client.annotate(id, AnnotationStart(rating=rating, comment=RULE))
        model = client.train(Training(name="tone", trace_ids=ids))
        while not client.get_reward_model(model.id).is_final:
            pass
        run = client.start_run(RunStart(reward_model_id=model.id, task_model="openai/x", **start))
        while not client.get_run(run.id).is_final:
            pass
    return f"stash:{run.id}"


def measured(sides: BothSides, run_id: str, server: ModelServer, **asked: object) -> Run:
    with sides.client() as client:
        asked = {"task_api_base": server.base_url, **asked}
        started = rescore(sides.hybrid(client), sides.backend, Rescore(run_id, **asked))
    drain(sides.stage.settings)
    return sides.backend.get_run(started.run.id)


def test_seed_and_best_are_answered_afresh_and_the_verdict_says_what_that_is_worth(
    sides: BothSides, server: ModelServer
) -> None:
    run_id = run_of(sides)
    run = measured(sides, run_id, server)
    assert run.status is JobStatus.SUCCEEDED, run.error
    assert len(server.requests) == 2 * COUNT
    seed, best = sides.backend.list_candidates(run.id)
    assert len(seed.scores) == len(best.scores) == COUNT
    assert best.score > seed.score
    assert run.verdict.startswith("Confirmed in-sample: measured again here with fresh replies")
    assert (
        f"on {COUNT} of the conversations that Stash's search saw ({COUNT} in all)" in run.verdict
    )
    assert "95 % interval" in run.verdict
    assert "Stash says, in-sample, 0.520 to 0.610" in run.verdict
    assert "Nothing was held out from that search" in run.verdict
    assert (run.heldout, run.stop_reason, run.install_state) == (None, "measured", "off")
    result = json.loads((sides.stage.settings.runs_dir / run.id / "result.json").read_bytes())
    assert result["remeasured"]["examples"] == COUNT
    assert result["remeasured"]["low"] > 0


def test_the_same_measure_is_not_paid_twice(sides: BothSides, server: ModelServer) -> None:
    run_id = run_of(sides)
    first = measured(sides, run_id, server)
    assert measured(sides, run_id, server).id == first.id
    again = measured(sides, run_id, server, new=True)
    assert (again.id != first.id, len(server.requests)) == (True, 2 * COUNT)
    assert measured(sides, run_id, server, new=True, fresh=True).verdict == first.verdict
    assert len(server.requests) == 4 * COUNT


def test_a_skill_that_changes_nothing_is_no_reliable_improvement(sides: BothSides) -> None:
    with model_server(lambda request: says(BAD)) as server:
        run = measured(sides, run_of(sides), server)
    assert run.verdict.startswith("No reliable improvement: measured again here")
    assert "the interval includes 0" in run.verdict


def test_a_cancelled_measure_is_carried_on(sides: BothSides, server: ModelServer) -> None:
    with sides.client() as client:
        asked = Rescore(run_of(sides), task_api_base=server.base_url)
        started = rescore(sides.hybrid(client), sides.backend, asked)
    sides.backend.cancel(started.run.id)
    assert sides.backend.resume_run(started.run.id).status is JobStatus.QUEUED
    drain(sides.stage.settings)
    assert sides.backend.get_run(started.run.id).status is JobStatus.SUCCEEDED


def test_a_task_model_that_answers_nothing_fails_it_with_its_words(sides: BothSides) -> None:
    with model_server(lambda request: fails(400, "no such thing")) as server:
        run = measured(sides, run_of(sides), server)
    assert run.status is JobStatus.FAILED
    assert "no such thing" in run.reason


def test_conversations_that_all_ask_the_same_give_no_interval_and_are_refused(
    sides: BothSides, server: ModelServer
) -> None:
    with pytest.raises(InputError, match="Only one conversation can be replayed"):
        measured(sides, run_of(sides, alike=True), server)


def test_a_key_of_this_machine_goes_to_no_server_that_only_stash_names(
    sides: BothSides, server: ModelServer
) -> None:
    run_id = run_of(sides, task_api_base="http://elsewhere.example/v1")
    with pytest.raises(InputError, match="behind a server of its own"):
        measured(sides, run_id, server, task_api_base=None)
    assert server.requests == []


def test_a_run_without_a_result_or_without_its_conversations_is_refused(
    sides: BothSides, server: ModelServer
) -> None:
    run_id = run_of(sides)
    for remote_id in list(sides.stash.world.traces):
        with sides.client() as client:
            client.delete_trace(remote_id)
    with pytest.raises(NotFoundError, match="is at Stash any more"):
        measured(sides, run_id, server)
    sides.stash.world.runs[run_id.removeprefix("stash:")].status = "running"
    sides.stash.world.polls = 0
    with pytest.raises(StashNotReadyError, match="is running"):
        measured(sides, run_id, server)


def test_a_checkpoint_of_input_version_3_judges_here_as_well(
    sides: BothSides, server: ModelServer, tmp_path: Path
) -> None:
    pack(save_sectioned(tmp_path / "third", 1024), tmp_path / "third.tar.gz")
    sides.stash.storage.data = (tmp_path / "third.tar.gz").read_bytes()
    run = measured(sides, run_of(sides), server)
    assert run.status is JobStatus.SUCCEEDED, run.error
    seed, best = sides.backend.list_candidates(run.id)
    assert set(seed.scores.values()) != set(best.scores.values())
