"""Cancelling for real: a worker in the middle of calls that never answer."""

import itertools
import json
import os
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

import pytest
from support.model_server import ModelServer, Reply, Request, model_server, says
from support.tiny_models import save_tiny_base

from stash_mcp.backends.base import AnnotationDraft, InstallOrder, RunOrder
from stash_mcp.backends.local import LocalBackend, open_local_backend
from stash_mcp.errors import NotReadyError
from stash_mcp.models import JobStatus, PreferencePair, Run
from stash_mcp.reward.train import train
from stash_mcp.settings import load_settings
from stash_mcp.storage.files import try_lock

PATIENCE_SECONDS = 60
SEED_CALLS = 4


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("model")
    base = save_tiny_base(folder / "base", "user assistant hello yes no")
    pairs = [
        PreferencePair(
            chosen=f"user: hello {number}\n\nassistant: yes",
            rejected=f"user: hello {number}\n\nassistant: no",
            chosen_trace_id=f"a{number}",
            rejected_trace_id=f"b{number}",
            granularity="step",
        )
        for number in range(4)
    ]
    train(pairs, base_model=str(base), output_dir=folder / "checkpoint", learning_rate=0.01)
    return folder / "checkpoint"


@pytest.fixture
def backend(monkeypatch: pytest.MonkeyPatch) -> LocalBackend:
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(Path(__file__).parents[1]), *sys.path]))
    return open_local_backend(load_settings())


class StuckModel:
    """Answers the seed's calls, and hangs from then on."""

    def __init__(self) -> None:
        self.hangs = threading.Event()
        self._answered = iter(range(SEED_CALLS))

    def __call__(self, request: Request) -> Reply:
        if next(self._answered, None) is not None:
            return says("yes")
        self.hangs.set()
        return Reply(hang=True)


@pytest.fixture
def stuck() -> StuckModel:
    return StuckModel()


@pytest.fixture
def server(stuck: StuckModel) -> Iterator[ModelServer]:
    with model_server(stuck) as running:
        yield running


def start(backend: LocalBackend, checkpoint: Path, server: ModelServer, **changes: object) -> Run:
    rows = [
        {"id": f"t{number}", "steps": [{"role": "user", "content": f"hello {number}"}]}
        for number in range(SEED_CALLS)
    ]
    backend.import_traces("\n".join(json.dumps(row) for row in rows).encode())
    backend.annotate(AnnotationDraft(trace_id="t0", comment="Say when an answer will come."))
    order = {
        "reward_model_id": backend.import_reward_model(checkpoint).id,
        "task_model": "openai/task",
        "task_api_base": server.base_url,
        "reflection_model": "builtin/comments",
        "skill_name": "greeting",
        "skill_description": "How to greet.",
        **changes,
    }
    return backend.start_run(RunOrder.model_validate(order)).run


def until(condition: Callable[[], bool]) -> bool:
    pause = threading.Event()
    deadline = datetime.now(UTC).timestamp() + PATIENCE_SECONDS
    while not condition():
        if datetime.now(UTC).timestamp() > deadline:
            return False
        pause.wait(0.05)
    return True


@pytest.mark.timeout(150)
def test_a_run_in_the_middle_of_slow_calls_is_cancelled_and_its_best_stays_usable(
    backend: LocalBackend, checkpoint: Path, stuck: StuckModel, server: ModelServer
) -> None:
    run = start(backend, checkpoint, server)
    assert stuck.hangs.wait(PATIENCE_SECONDS)
    cancelled = backend.cancel(run.id)
    assert cancelled is not None
    assert (cancelled.status, cancelled.partial) == (JobStatus.CANCELLED, True)
    assert cancelled.stop_reason == "cancelled"
    lock = load_settings().worker_lock_path
    with try_lock(lock, timeout=PATIENCE_SECONDS) as free:
        assert free, "the worker is still there"
    assert [candidate.number for candidate in backend.list_candidates(run.id)] == [0]
    load_settings().project_dir.mkdir()
    [outcome] = backend.install_skill(InstallOrder(run_id=run.id))
    assert Path(outcome.installation.path).read_text(encoding="utf-8").endswith("How to greet.")
    assert backend.cancel(run.id) == backend.get_run(run.id)


def test_a_queued_run_is_cancelled_at_once_and_has_nothing_to_install(
    checkpoint: Path, server: ModelServer
) -> None:
    numbers = iter(range(100))
    backend = LocalBackend(
        load_settings(),
        clock=lambda: datetime.now(UTC),
        new_id=lambda: str(next(numbers)),
        start_worker=lambda settings: False,
    )
    run = start(backend, checkpoint, server)
    cancelled = backend.cancel(run.id)
    assert cancelled is not None
    assert (cancelled.status, cancelled.partial) == (JobStatus.CANCELLED, False)
    with pytest.raises(NotReadyError):
        backend.install_skill(InstallOrder(run_id=run.id))
    resumed = backend.resume_run(run.id)
    assert resumed.status is JobStatus.QUEUED


def test_equal_orders_at_the_same_time_start_one_run(checkpoint: Path, server: ModelServer) -> None:
    numbers = itertools.count()
    backends = [
        LocalBackend(
            load_settings(),
            clock=lambda: datetime.now(UTC),
            new_id=lambda: str(next(numbers)),
            start_worker=lambda settings: False,
        )
        for _ in range(6)
    ]
    first = start(backends[0], checkpoint, server)
    backends[0].cancel(first.id)
    order = RunOrder(
        reward_model_id=first.request.reward_model_id,
        task_model="openai/task",
        task_api_base=server.base_url,
        reflection_model="builtin/comments",
        skill_name="greeting",
        skill_description="How to greet.",
    )
    with ThreadPoolExecutor(len(backends)) as pool:
        started = list(pool.map(lambda backend: backend.start_run(order), backends))
    assert len({one.run.id for one in started}) == 1
    assert sum(not one.existing for one in started) == 1


def test_an_equal_run_is_found_and_new_starts_another(
    checkpoint: Path, server: ModelServer
) -> None:
    numbers = iter(range(100))
    backend = LocalBackend(
        load_settings(),
        clock=lambda: datetime.now(UTC),
        new_id=lambda: str(next(numbers)),
        start_worker=lambda settings: False,
    )
    first = start(backend, checkpoint, server)
    order = RunOrder(
        reward_model_id=first.request.reward_model_id,
        task_model="openai/task",
        task_api_base=server.base_url,
        reflection_model="builtin/comments",
        skill_name="greeting",
        skill_description="How to greet.",
    )
    again = backend.start_run(order)
    assert (again.run.id, again.existing) == (first.id, True)
    other = backend.start_run(order.model_copy(update={"random_seed": 1}))
    assert not other.existing
    forced = backend.start_run(order.model_copy(update={"new": True}))
    assert (forced.existing, forced.run.id != first.id) == (False, True)
    backend.cancel(forced.run.id)
    backend.cancel(first.id)
    assert not backend.start_run(order).existing
