"""A library on disk and a stand-in Stash behind one backend, with one pace for both: a job goes on
when the test says so.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from stand_in_stash import StandIn, stand_in
from stand_in_stash.jobs import advance

from stash_mcp.backends.both import Backends, both_sides
from stash_mcp.runs.folder import JobFolder
from stash_mcp.settings import BackendName, Settings, StashAccess
from stash_mcp.stash import Limits, StashClient, open_client
from support.staging import METRICS, Stage, result, write_checkpoint

SCORED = (("Answer.", 0.4), ("Ask for the order number.", 0.6))


def without_pauses(access: StashAccess, limits: Limits) -> StashClient:
    return open_client(access, limits, sleep=lambda seconds: None)


@dataclass
class TwoSides:
    """key: of Stash; None for who has none. seconds: of the clock that only grows."""

    stage: Stage
    stash: StandIn
    key: str | None
    seconds: float = 0.0

    def __post_init__(self) -> None:
        self.backend = self.open(self.stage.settings)

    def open(self, settings: Settings) -> Backends:
        """As another process would, over the same library."""
        local = self.stage.open(settings)
        return both_sides(
            settings,
            local,
            self.access,
            self.stage.clock,
            without_pauses,
            fresh_seconds=0,
            monotonic=lambda: self.seconds,
        )

    def access(self) -> StashAccess:
        return StashAccess(self.stash.base_url, self.key, "a test", "no key is set")

    def end_training(self, where: BackendName) -> None:
        """The one that waits succeeds."""
        if where == "stash":
            self._end(self.stash.world.models)
            return
        job = self.stage.begin()
        self.stage.now += timedelta(seconds=60)
        write_checkpoint(JobFolder(self.stage.settings.reward_models_dir / job.id).model_path)
        self.stage.store.succeed(job.id, json.dumps({"metrics": METRICS}))

    def end_run(self, where: BackendName) -> None:
        if where == "stash":
            self._end(self.stash.world.runs)
            return
        job = self.stage.begin()
        self.stage.score(job.id, *SCORED)
        self.stage.now += timedelta(seconds=90)
        self.stage.store.succeed(job.id, json.dumps(result(SCORED)))

    def _end(self, jobs: dict) -> None:
        with self.stash.world.lock:
            for job in jobs.values():
                while job.status in ("queued", "running"):
                    advance(self.stash.world, job)


@contextmanager
def two_sides(root: Path, *, has_key: bool = True) -> Iterator[TwoSides]:
    stage = Stage(root)
    with stand_in() as stash:
        stash.world.polls = 0
        both = TwoSides(stage, stash, stash.key if has_key else None)
        try:
            yield both
        finally:
            both.backend.close()


def rated_in_stash(both: TwoSides, count: int = 4) -> tuple[str, ...]:
    """Conversations that lie in Stash alone, every second one rated down; their ids."""
    from stash_mcp.backends.base import AnnotationDraft
    from support.stash_calls import conversations

    side = both.backend.at("stash")
    ids = side.import_traces(conversations(count).encode()).trace_ids
    for number, id in enumerate(ids):
        side.annotate(
            AnnotationDraft(
                trace_id=id,
                step_index=1,
                rating=-1 if number % 2 else 1,
                comment=f"Say when it arrives, case {number}.",
            )
        )
    return ids


def trained_at_stash(both: TwoSides) -> str:
    from stash_mcp.backends.base import TrainOrder

    model = both.backend.train_reward_model(TrainOrder(trace_ids=rated_in_stash(both)))
    both.end_training("stash")
    return model.id
