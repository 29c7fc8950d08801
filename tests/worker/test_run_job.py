"""A run as the worker does it: a small reward model, and a task model behind a real server."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.model_server import ModelServer, Reply, Request, model_server, says
from support.staging import Stage
from support.tiny_jobs import BAD, GOOD, notes, talks, tiny_checkpoint

from stash_mcp.backends.base import RunOrder
from stash_mcp.models import JobStatus
from stash_mcp.runs.folder import JobFolder
from stash_mcp.worker.drain import drain

# The contract's, and the fingerprint, which is ours.
FILES = {"job.json", "gepa_examples.jsonl", "result.json", "worker.log", "fingerprint.json"}
RESULT = {
    "skill_name",
    "skill_description",
    "best_skill",
    "best_score",
    "seed_skill",
    "seed_score",
    "candidates",
}
ORDER = RunOrder(
    reward_model_id="rm-1",
    task_model="openai/task",
    reflection_model="builtin/comments",
    skill_name="parcels",
    skill_description="How to answer about parcels.",
)


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory, base: Path) -> Path:
    return tiny_checkpoint(tmp_path_factory.mktemp("trained") / "model", base)


def obedient(request: Request) -> Reply:
    """Polite once its skill says so."""
    return says(GOOD if "Ask for the order number" in request["messages"][0]["content"] else BAD)


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with model_server(obedient) as served:
        yield served


@pytest.fixture
def folder(stage: Stage, checkpoint: Path, server: ModelServer) -> JobFolder:
    stage.backend.import_traces(talks(4), annotations=notes(4))
    stage.backend.import_reward_model(checkpoint)
    order = ORDER.model_copy(update={"task_api_base": server.base_url})
    run = stage.backend.start_run(order).run
    drain(stage.settings)
    run = stage.backend.get_run(run.id)
    assert run.status is JobStatus.SUCCEEDED, run.error
    return JobFolder(stage.settings.runs_dir / run.id)


def test_the_folder_holds_the_contracts_files_and_the_fingerprint(folder: JobFolder) -> None:
    assert {path.name for path in folder.path.iterdir()} == FILES


def test_the_result_has_the_contracts_shape_and_is_what_the_library_says(
    folder: JobFolder, stage: Stage
) -> None:
    result = json.loads(folder.result_path.read_bytes())
    run = stage.backend.get_run(folder.path.name)
    candidates = stage.backend.list_candidates(run.id)
    assert result.keys() >= RESULT
    assert result["candidates"] == [
        {"skill": candidate.skill, "score": candidate.score} for candidate in candidates
    ]
    assert result["candidates"][0] == {
        "skill": result["seed_skill"],
        "score": result["seed_score"],
    }
    assert result["best_score"] == run.best_score == max(c.score for c in candidates)
    assert result["best_score"] > result["seed_score"]
    assert result["seed_skill"] == (
        "---\nname: parcels\ndescription: How to answer about parcels.\n---\n\n"
        "How to answer about parcels."
    )


def test_what_was_used_and_what_happened_is_told(
    folder: JobFolder, stage: Stage, server: ModelServer
) -> None:
    run = stage.backend.get_run(folder.path.name)
    progress = run.progress
    assert progress.phase == "finished"
    assert 0 < progress.metric_calls <= run.plan.max_metric_calls
    assert progress.task_usage.calls == len(server.requests)
    assert progress.candidates == len(stage.backend.list_candidates(run.id))
    messages = [event.message for event in stage.backend.events(run.id)]
    assert messages[0] == "The skill is named parcels."
    assert messages[1].startswith("The seed scored")
    assert messages[-2] == "The job succeeded."
    assert messages[-1].startswith(f"The skill of run {run.id} is installed")


def test_an_equal_run_on_the_same_library_asks_no_model_again(
    folder: JobFolder, stage: Stage, server: ModelServer
) -> None:
    asked = len(server.requests)
    order = ORDER.model_copy(update={"task_api_base": server.base_url, "new": True})
    again = stage.backend.start_run(order).run
    drain(stage.settings)
    ended = stage.backend.get_run(again.id)
    assert ended.status is JobStatus.SUCCEEDED
    assert len(server.requests) == asked
    first = stage.backend.list_candidates(folder.path.name)
    assert stage.backend.list_candidates(again.id) == first


def test_a_run_whose_reward_model_is_gone_by_now_fails_naming_it(
    stage: Stage, checkpoint: Path
) -> None:
    stage.backend.import_traces(talks(4), annotations=notes(4))
    stage.backend.import_reward_model(checkpoint)
    run = stage.backend.start_run(ORDER).run
    (stage.settings.reward_models_dir / "rm-1" / "model" / "reward_stats.json").unlink()
    drain(stage.settings)
    reason = stage.backend.get_run(run.id).reason or ""
    assert "has no reward_stats.json: it was trained before calibration" in reason
