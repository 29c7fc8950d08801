"""The pipeline on this machine: the library, the job folders, and the worker that does the work.

Everything that can be refused is refused here, before a job exists; the worker meets only what
cannot be known in advance.
"""

import os
import secrets
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

from stash_mcp.backends import views
from stash_mcp.backends.base import (
    AnnotationDraft,
    ImportReport,
    InstallOrder,
    InstallOutcome,
    RunOrder,
    TraceDetail,
    TracePage,
    TrainOrder,
)
from stash_mcp.backends.extras import require_extra
from stash_mcp.checkpoints import pack, staged_folder, unpack, verify_checkpoint
from stash_mcp.datasets.examples import build_examples, split_heldout
from stash_mcp.datasets.pairs import build_pairs
from stash_mcp.errors import NotFoundError, NotReadyError, SkillDocumentError
from stash_mcp.models import (
    Annotation,
    Candidate,
    Event,
    Job,
    JobKind,
    JobStatus,
    RewardModel,
    Run,
    RunRequest,
    Trace,
    TrainRequest,
)
from stash_mcp.rendering import render_steps
from stash_mcp.runs.folder import JobFolder
from stash_mcp.runs.launcher import ensure_worker
from stash_mcp.runs.plan import check_budget, default_budget, make_plan
from stash_mcp.runs.store import JobStore
from stash_mcp.settings import Settings
from stash_mcp.skills.document import problems_with_description, problems_with_name
from stash_mcp.skills.install import install
from stash_mcp.skills.manifest import Manifest
from stash_mcp.skills.targets import resolve
from stash_mcp.storage.database import Database
from stash_mcp.storage.files import os_errors
from stash_mcp.storage.library import Library
from stash_mcp.traces.annotations import (
    check_annotation,
    export_annotation,
    make_annotation,
    parse_annotations,
)
from stash_mcp.traces.formats import parse_traces
from stash_mcp.traces.stash import export_trace

REVIVE_SECONDS = 5.0
"""How often, at most, a look at a job also looks whether a worker is alive."""


def open_local_backend(settings: Settings) -> "LocalBackend":
    """The backend over the library of `settings.home`, which is made where it is missing."""
    return LocalBackend(settings, lambda: datetime.now(UTC), lambda: secrets.token_hex(4))


class LocalBackend:
    def __init__(
        self,
        settings: Settings,
        clock: Callable[[], datetime],
        new_id: Callable[[], str],
        start_worker: Callable[[Settings], bool] = ensure_worker,
    ) -> None:
        database = Database(settings.library_path)
        self._settings = settings
        self._clock = clock
        self._new_id = new_id
        self._start_worker = start_worker
        self._library = Library(database)
        self._jobs = JobStore(database, clock)
        self._manifest = Manifest(database)
        self._looked_at = float("-inf")
        self._revive()

    def _revive(self) -> None:
        """What a dead worker left is carried on by whoever looks next."""
        now = time.monotonic()
        if now - self._looked_at < REVIVE_SECONDS:
            return
        self._looked_at = now
        if self._jobs.has_work():
            self._start_worker(self._settings)

    # --- traces and annotations ---

    def import_traces(
        self, data: bytes, *, format: str = "auto", annotations: bytes | None = None
    ) -> ImportReport:
        parsed = parse_traces(data, format)
        comments = [] if annotations is None else parse_annotations(annotations)
        # Both files are checked before either is stored.
        self._check(comments, {trace.id: trace for trace in parsed.traces})
        counts = self._library.put_traces(parsed.traces)
        added = self._library.add_annotations(comments, check_annotation)
        return ImportReport(
            format=parsed.format,
            imported=len(parsed.traces),
            added=counts.added,
            replaced=counts.replaced,
            unchanged=counts.unchanged,
            annotations_removed=counts.annotations_removed,
            annotations_added=added,
            trace_ids=tuple(trace.id for trace in parsed.traces),
        )

    def import_annotations(self, data: bytes) -> int:
        return self._library.add_annotations(parse_annotations(data), check_annotation)

    def _check(self, annotations: Sequence[Annotation], given: dict[str, Trace]) -> None:
        for annotation in annotations:
            trace = given.get(annotation.trace_id) or self._library.trace(annotation.trace_id)
            check_annotation(annotation, trace)

    def export_traces(self) -> Iterator[str]:
        for trace in self._library.traces(self._library.matching_ids(None)):
            yield export_trace(trace)

    def export_annotations(self) -> Iterator[str]:
        for annotation in self._library.annotations(self._library.matching_ids(None)):
            yield export_annotation(annotation)

    def annotate(self, draft: AnnotationDraft) -> Annotation:
        annotation = make_annotation(
            created_at=self._clock(),
            trace_id=draft.trace_id,
            step_index=draft.step_index,
            rating=draft.rating,
            comment=draft.comment,
            quote=draft.quote,
            author=draft.author,
        )
        self._library.add_annotations([annotation], check_annotation)
        return annotation

    def flag_annotation(self, annotation_id: str, note: str | None, *, flagged: bool) -> Annotation:
        return self._library.flag_annotation(annotation_id, note, flagged=flagged)

    def list_traces(
        self, *, limit: int, offset: int, text: str | None = None, commented: bool | None = None
    ) -> TracePage:
        traces, total = self._library.list_traces(
            limit=limit, offset=offset, text=text, commented=commented
        )
        return TracePage(traces=tuple(traces), total=total)

    def get_trace(self, trace_id: str) -> TraceDetail:
        return TraceDetail(
            trace=self._library.trace(trace_id),
            annotations=tuple(self._library.annotations([trace_id])),
        )

    # --- reward models ---

    def train_reward_model(self, order: TrainOrder) -> RewardModel:
        require_extra("local", "Training a reward model on this machine")
        trace_ids = self._library.matching_ids(order.trace_ids)
        annotations = self._library.annotations(trace_ids)
        pairs = build_pairs(self._library.traces(trace_ids), annotations, order.max_pairs)
        request = TrainRequest(
            base_model=self._base_model(order.base_model),
            epochs=order.epochs,
            max_pairs=order.max_pairs,
            learning_rate=order.learning_rate,
            trace_ids=trace_ids,
            num_pairs=len(pairs),
        )
        job_id = f"rm-{self._new_id()}"
        folder = self._model_folder(job_id)
        folder.create_training(request, pairs)
        folder.write_score_items(
            [(trace.id, render_steps(trace.steps)) for trace in self._library.traces(trace_ids)]
        )
        self._jobs.create(job_id, JobKind.TRAIN, order.name or job_id, request)
        self._start_worker(self._settings)
        return self.get_reward_model(job_id)

    def _base_model(self, name: str) -> str:
        """A folder becomes absolute: the worker stands in another one. A hub's id stays."""
        folder = (self._settings.project_dir / Path(name).expanduser()).absolute()
        return str(folder) if folder.is_dir() else name

    def import_reward_model(self, path: Path, name: str | None = None) -> RewardModel:
        job_id = f"rm-{self._new_id()}"
        path = self._settings.project_dir / path.expanduser()
        _take(path, self._model_folder(job_id).model_path)
        request = TrainRequest(base_model="(imported)", imported_from=path.name)
        self._jobs.create(
            job_id, JobKind.TRAIN, name or path.name, request, status=JobStatus.RUNNING
        )
        self._jobs.succeed(job_id, "{}")
        return self.get_reward_model(job_id)

    def export_reward_model(self, reward_model_id: str, path: Path) -> Path:
        self._trained(reward_model_id)
        pack(self._model_folder(reward_model_id).model_path, path)
        return path

    def list_reward_models(self) -> list[RewardModel]:
        self._revive()
        return [views.reward_model(job) for job in self._jobs.all(JobKind.TRAIN)]

    def get_reward_model(self, reward_model_id: str) -> RewardModel:
        self._revive()
        return views.reward_model(self._jobs.get(reward_model_id, JobKind.TRAIN))

    def _trained(self, reward_model_id: str) -> Job:
        job = self._jobs.get(reward_model_id, JobKind.TRAIN)
        if job.status is not JobStatus.SUCCEEDED:
            raise NotReadyError(
                f"The reward model '{reward_model_id}' is {job.status}, not trained.",
                "Wait for it to succeed, or train another one."
                if not job.status.is_final
                else f"It ended with: {job.reason} Train another one.",
            )
        return job

    def _model_folder(self, job_id: str) -> JobFolder:
        return JobFolder(self._settings.reward_models_dir / job_id)

    # --- runs ---

    def start_run(self, order: RunOrder) -> Run:
        require_extra("local", "A run on this machine")
        _check_identity(order)
        model = self._trained(order.reward_model_id)
        verify_checkpoint(self._model_folder(model.id).model_path)
        trace_ids = self._run_traces(order, model)
        built = build_examples(
            self._library.traces(trace_ids), self._library.annotations(trace_ids)
        )
        examples, heldout = built.examples, 0
        if order.heldout:
            examples, heldout = split_heldout(built.examples, order.seed)
        scored = len(examples) - heldout
        minibatch = min(order.minibatch_size, scored)
        budget = order.max_metric_calls or default_budget(scored, minibatch)
        check_budget(budget, scored, minibatch)
        request = RunRequest(
            **order.model_dump(exclude={"max_metric_calls", "trace_ids", "heldout"}),
            max_metric_calls=budget,
            heldout=heldout,
        )
        plan = make_plan(
            examples,
            heldout=heldout,
            skipped=built.skipped,
            budget=budget,
            minibatch=minibatch,
            reflection_model=order.reflection_model,
        )
        job_id = f"run-{self._new_id()}"
        JobFolder(self._settings.runs_dir / job_id).create_run(request, examples)
        self._jobs.create(job_id, JobKind.GEPA, order.skill_name or job_id, request, plan)
        self._start_worker(self._settings)
        return self.get_run(job_id)

    def _run_traces(self, order: RunOrder, model: Job) -> tuple[str, ...]:
        if order.trace_ids is not None:
            return self._library.matching_ids(order.trace_ids)
        known = self._library.matching_ids(None)
        trained_on = set(TrainRequest.model_validate(model.request).trace_ids)
        return tuple(trace_id for trace_id in known if trace_id in trained_on) or known

    def get_run(self, run_id: str) -> Run:
        self._revive()
        job = self._jobs.get(run_id, JobKind.GEPA)
        return views.run(job, self._jobs.candidates(run_id))

    def list_runs(self) -> list[Run]:
        self._revive()
        return [
            views.run(job, self._jobs.candidates(job.id)) for job in self._jobs.all(JobKind.GEPA)
        ]

    def events(self, job_id: str, *, after: int = 0) -> list[Event]:
        return self._jobs.events(self._jobs.get(job_id).id, after)

    def list_candidates(self, run_id: str) -> list[Candidate]:
        return self._jobs.candidates(self._jobs.get(run_id, JobKind.GEPA).id)

    # --- skills ---

    def install_skill(self, order: InstallOrder) -> InstallOutcome:
        candidate = self._chosen(order)
        installed = install(
            candidate.skill,
            target=resolve(self._settings, order.scope),
            run_id=order.run_id,
            candidate=candidate.number,
            manifest=self._manifest,
            backups_dir=self._settings.backups_dir,
            force=order.force,
            now=self._clock(),
        )
        return InstallOutcome(
            installation=installed.installation,
            action=installed.action,
            backup=None if installed.backup is None else os.fspath(installed.backup),
            visibility=installed.visibility,
        )

    def _chosen(self, order: InstallOrder) -> Candidate:
        run = self.get_run(order.run_id)
        if run.status is not JobStatus.SUCCEEDED:
            raise NotReadyError(
                f"The run '{run.id}' is {run.status}; only a finished run's skill is installed.",
                "Ask get_run for it, and install when it has succeeded."
                if not run.status.is_final
                else f"It ended with: {run.reason} Start another run.",
            )
        number = run.best_candidate if order.candidate is None else order.candidate
        for candidate in self.list_candidates(run.id):
            if candidate.number == number:
                return candidate
        raise NotFoundError(
            f"The run '{run.id}' has no candidate {number}.",
            "List its candidates to see their numbers (list_candidates, or "
            "`stash-skills candidates RUN`).",
        )


def _take(path: Path, into: Path) -> None:
    """A copy of the checkpoint at `path`, a folder or an archive of one, checked."""
    if not path.is_dir():
        unpack(path, into)
        return
    verify_checkpoint(path)
    with staged_folder(into) as folder, os_errors("copy", path):
        shutil.copytree(path, folder, dirs_exist_ok=True)


def _check_identity(order: RunOrder) -> None:
    problems: list[str] = []
    if order.skill_name is not None:
        problems += problems_with_name(order.skill_name)
    if order.skill_description is not None:
        problems += problems_with_description(order.skill_description)
    if problems:
        raise SkillDocumentError(
            f"The skill cannot be called so: {' '.join(problems)}",
            "Correct skill_name and skill_description, or leave them out.",
        )
