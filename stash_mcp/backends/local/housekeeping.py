"""What is kept, how much room it takes, and taking away what is old."""

import codecs
import shutil
from datetime import timedelta
from functools import cached_property
from pathlib import Path

from stash_mcp.backends.base import CacheReport, DiskUse, LogPart, PruneReport
from stash_mcp.backends.local.workshop import Workshop
from stash_mcp.models import Job, JobKind
from stash_mcp.storage.calls import CallStore
from stash_mcp.storage.files import os_errors

LOG_PART_BYTES = 200_000


class Housekeeping(Workshop):
    @cached_property
    def _calls(self) -> CallStore:
        return CallStore(self._settings.calls_path, self._clock)

    def cache(self) -> CacheReport:
        stats = self._calls.stats()
        return CacheReport(entries=stats.entries, bytes=stats.bytes)

    def clear_cache(self) -> CacheReport:
        """Forget every paid answer; returns what there was."""
        before = self._calls.clear()
        return CacheReport(entries=before.entries, bytes=before.bytes)

    def read_log(self, job_id: str, *, offset: int = 0) -> LogPart:
        """The job's log from byte `offset` on; empty where there is none yet.

        A log that was rotated since, and so is shorter than `offset`, is read from its start.
        """
        path = self._job_folder(self._jobs.get(job_id)).log_path
        if not path.exists():
            return LogPart(text="", next_offset=0)
        with os_errors("read", path), path.open("rb") as file:
            start = offset if offset <= path.stat().st_size else 0
            file.seek(start)
            data = file.read(LOG_PART_BYTES)
        decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        text = decoder.decode(data)
        # A character whose end is not read yet comes with the next part.
        unread = len(decoder.getstate()[0])
        return LogPart(text=text, next_offset=start + len(data) - unread)

    def disk_use(self) -> DiskUse:
        settings = self._settings
        return DiskUse(
            home=str(settings.home),
            library=_size(settings.library_path),
            calls=_size(settings.calls_path),
            runs=_size(settings.runs_dir),
            reward_models=_size(settings.reward_models_dir),
            backups=_size(settings.backups_dir),
        )

    def prune(self, *, older_than_days: float, dry_run: bool) -> PruneReport:
        """Take away the folders of runs that ended so long ago, but of none that is installed.

        The runs, their candidates and results stay in the library; their inputs and logs go.
        """
        before = self._clock() - timedelta(days=older_than_days)
        installed = self._manifest.standing()
        ended = [
            job
            for job in self._jobs.all(JobKind.GEPA)
            if job.finished_at is not None
            and job.finished_at <= before
            and self._job_folder(job).path.exists()
        ]
        old = [job for job in ended if job.id not in installed]
        return PruneReport(
            run_ids=tuple(job.id for job in old),
            bytes=sum(self._prune(job, dry_run) for job in old),
            kept_installed=len(ended) - len(old),
            dry_run=dry_run,
        )

    def _prune(self, job: Job, dry_run: bool) -> int:
        path = self._job_folder(job).path
        size = _size(path)
        if not dry_run:
            with os_errors("remove", path):
                shutil.rmtree(path)
        return size


def _size(path: Path) -> int:
    """Bytes of a file, or of all files below a folder; 0 where there is nothing."""
    if not path.is_dir():
        return path.stat().st_size if path.exists() else 0
    return sum(file.stat().st_size for file in path.rglob("*") if file.is_file())
