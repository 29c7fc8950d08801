"""A job's folder: the files' names and shapes that the pipeline's contract fixes.

`job.json` and the inputs are written when the job is created and are not changed after; the rest
is the worker's. Keys and files of ours stand beside the contract's and keep their meaning.
"""

import contextlib
import json
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from stash_mcp.errors import RunError
from stash_mcp.models import (
    Example,
    Frozen,
    JobKind,
    PreferencePair,
    RunRequest,
    TrainRequest,
)
from stash_mcp.storage.files import (
    jsonl_lines,
    private_dir,
    private_parents,
    read_text,
    write_atomic,
    write_json,
    write_jsonl,
)

ERROR_CHARACTERS = 2000

Row = TypeVar("Row", bound=BaseModel)


class JobFolder:
    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def log_path(self) -> Path:
        return self.path / "worker.log"

    @property
    def model_path(self) -> Path:
        return self.path / "model"

    @property
    def examples_path(self) -> Path:
        return self.path / "gepa_examples.jsonl"

    @property
    def fingerprint_path(self) -> Path:
        return self.path / "fingerprint.json"

    @property
    def result_path(self) -> Path:
        return self.path / "result.json"

    @contextlib.contextmanager
    def created(self) -> Iterator[None]:
        """Make the folder for the block to fill; where that fails nothing of it stays."""
        with private_parents(self.path):
            private_dir(self.path)
            try:
                yield
            except BaseException:
                shutil.rmtree(self.path, ignore_errors=True)
                raise

    def create_training(self, request: TrainRequest, pairs: Sequence[PreferencePair]) -> None:
        write_jsonl(self.path / "pairs.jsonl", pairs)
        write_json(
            self.path / "job.json",
            {
                "kind": JobKind.TRAIN,
                "compute": "local",
                "artifact_key": None,
                **request.model_dump(mode="json"),
            },
        )

    def create_run(self, request: RunRequest, examples: Sequence[Example]) -> None:
        write_jsonl(self.examples_path, examples)
        write_json(
            self.path / "job.json",
            {
                "kind": JobKind.GEPA,
                "reward_model_key": request.reward_model_id,
                **request.model_dump(mode="json"),
            },
        )

    def pairs(self) -> list[PreferencePair]:
        return self._rows(self.path / "pairs.jsonl", PreferencePair)

    def examples(self) -> list[Example]:
        return self._rows(self.examples_path, Example)

    def write_score_items(self, items: Sequence[tuple[str, str]]) -> None:
        """(trace id, rendered text) of each trace that is scored once the model is trained."""
        write_jsonl(self._score_items_path, (_ScoreItem(trace_id=t, text=x) for t, x in items))

    def score_items(self) -> list[tuple[str, str]]:
        return [
            (item.trace_id, item.text) for item in self._rows(self._score_items_path, _ScoreItem)
        ]

    def write_scores(self, scores: Sequence[tuple[str, float]]) -> None:
        """(trace id, raw reward)."""
        rows = (json.dumps({"trace_id": key, "score": score}) + "\n" for key, score in scores)
        write_atomic(self.path / "scores.jsonl", "".join(rows))

    def end_of_log(self) -> str:
        """The log's last 2,000 characters; empty when there is none."""
        if not self.log_path.exists():
            return ""
        text = self.log_path.read_bytes().decode("utf-8", errors="replace")
        return text[-ERROR_CHARACTERS:]

    @property
    def _score_items_path(self) -> Path:
        return self.path / "score_items.jsonl"

    def _rows(self, path: Path, kind: type[Row]) -> list[Row]:
        rows = []
        for number, line in jsonl_lines(read_text(path)):
            try:
                rows.append(kind.model_validate_json(line))
            except ValidationError as error:
                raise RunError(
                    f"The job's file {path} is damaged in line {number}.",
                    "Start the job again.",
                ) from error
        return rows


class _ScoreItem(Frozen):
    trace_id: str
    text: str
