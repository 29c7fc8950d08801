"""What is done on either side, sent to the one where its thing lies."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TypeVar

from stash_mcp.backends.base import (
    AnnotationDraft,
    ImportReport,
    LogPart,
    RunOrder,
    Side,
    StartedRun,
    TraceDetail,
    TracePage,
    TrainOrder,
    WaitingReflection,
)
from stash_mcp.backends.both.lists import StashLists
from stash_mcp.backends.ids import is_stash
from stash_mcp.backends.local import LocalBackend
from stash_mcp.backends.stash import StashSide
from stash_mcp.models import Annotation, Candidate, Event, RewardModel, Run, Submission
from stash_mcp.settings import BackendName

J = TypeVar("J", Run, RewardModel)


class Sides:
    """default: the side of what no id and no caller gives a side. lists: Stash's part of lists."""

    def __init__(
        self, local: LocalBackend, stash: StashSide, lists: StashLists, default: BackendName
    ) -> None:
        self._local = local
        self._stash = stash
        self._lists = lists
        self._default: BackendName = default

    def at(self, name: BackendName | None) -> Side:
        return self if name is None else self._side(name)

    def unreached(self) -> str | None:
        return self._lists.unreached

    def _side(self, name: BackendName) -> Side:
        return self._stash if name == "stash" else self._local

    def _of(self, id: str) -> Side:
        return self._side("stash" if is_stash(id) else "local")

    @property
    def _usual(self) -> Side:
        return self._side(self._default)

    # --- conversations ---

    def import_traces(
        self, data: bytes, *, format: str = "auto", annotations: bytes | None = None
    ) -> ImportReport:
        return self._usual.import_traces(data, format=format, annotations=annotations)

    def import_annotations(self, data: bytes) -> int:
        return self._usual.import_annotations(data)

    def export_traces(self) -> Iterator[str]:
        return self._usual.export_traces()

    def export_annotations(self) -> Iterator[str]:
        return self._usual.export_annotations()

    def annotate(self, draft: AnnotationDraft) -> Annotation:
        return self._of(draft.trace_id).annotate(draft)

    def flag_annotation(self, annotation_id: str, note: str | None, *, flagged: bool) -> Annotation:
        return self._of(annotation_id).flag_annotation(annotation_id, note, flagged=flagged)

    def list_traces(
        self, *, limit: int, offset: int, text: str | None = None, commented: bool | None = None
    ) -> TracePage:
        return self._usual.list_traces(limit=limit, offset=offset, text=text, commented=commented)

    def get_trace(self, trace_id: str) -> TraceDetail:
        return self._of(trace_id).get_trace(trace_id)

    # --- reward models ---

    def train_reward_model(self, order: TrainOrder) -> RewardModel:
        """Of ids of both sides in one order, Stash takes its own and those that were sent there."""
        if order.trace_ids is None:
            return self._usual.train_reward_model(order)
        at_stash = any(is_stash(id) for id in order.trace_ids)
        return self._side("stash" if at_stash else "local").train_reward_model(order)

    def export_reward_model(self, reward_model_id: str, path: Path) -> Path:
        return self._of(reward_model_id).export_reward_model(reward_model_id, path)

    def list_reward_models(self) -> list[RewardModel]:
        return _newest_first([*self._local.list_reward_models(), *self._lists.reward_models()])

    def get_reward_model(self, reward_model_id: str) -> RewardModel:
        return self._of(reward_model_id).get_reward_model(reward_model_id)

    # --- runs ---

    def start_run(self, order: RunOrder) -> StartedRun:
        return self._of(order.reward_model_id).start_run(order)

    def cancel(self, job_id: str) -> Run | None:
        return self._of(job_id).cancel(job_id)

    def resume_run(self, run_id: str) -> Run:
        return self._of(run_id).resume_run(run_id)

    def read_log(self, job_id: str, *, offset: int = 0) -> LogPart:
        return self._of(job_id).read_log(job_id, offset=offset)

    def get_run(self, run_id: str) -> Run:
        return self._of(run_id).get_run(run_id)

    def list_runs(self) -> list[Run]:
        """Of Stash all of the account, and those that this library knows."""
        told = self._lists.runs()
        ids = {run.id for run in told}
        known = [run for run in self._stash.kept_runs.all() if run.id not in ids]
        return _newest_first([*self._local.list_runs(), *told, *known])

    def known_runs(self) -> list[Run]:
        return self._local.known_runs()

    def get_reflection(self, run_id: str, number: int | None = None) -> WaitingReflection:
        return self._of(run_id).get_reflection(run_id, number)

    def submit_reflection(self, submission: Submission) -> Run:
        return self._of(submission.run_id).submit_reflection(submission)

    def events(self, job_id: str, *, after: int = 0) -> list[Event]:
        return self._of(job_id).events(job_id, after=after)

    def list_candidates(self, run_id: str) -> list[Candidate]:
        return self._of(run_id).list_candidates(run_id)


def _newest_first(jobs: Sequence[J]) -> list[J]:
    return sorted(jobs, key=lambda job: job.created_at, reverse=True)
