"""Pairs and examples of the real conversations, where they are at hand."""

from collections.abc import Collection
from datetime import datetime
from pathlib import Path

import pytest

from stash_mcp.datasets.examples import build_examples
from stash_mcp.datasets.pairs import build_pairs, split_pairs
from stash_mcp.errors import PairsError
from stash_mcp.models import Annotation
from stash_mcp.storage.database import Database
from stash_mcp.storage.library import Library
from stash_mcp.traces.annotations import check_annotation, parse_annotations
from stash_mcp.traces.formats import parse_traces


def no_time(annotation: Annotation, dated: Collection[str]) -> datetime:
    raise AssertionError("each of them has its own")


pytestmark = pytest.mark.data


def stored(folder: Path, name: str, home: Path) -> tuple[Library, tuple[str, ...]]:
    library = Library(Database(home / "library.db"))
    library.put_traces(parse_traces((folder / f"{name}.traces.jsonl").read_bytes()).traces)
    annotations = parse_annotations((folder / f"{name}.annotations.jsonl").read_bytes(), no_time)
    library.add_annotations(annotations, check_annotation)
    return library, library.matching_ids(None)


def test_tau_airline_gives_49_times_51_pairs(data_folder: Path, tmp_path: Path) -> None:
    library, ids = stored(data_folder, "tau-airline", tmp_path)
    pairs = build_pairs(library.traces(ids), library.annotations(ids), 4000)
    assert len(pairs) == 49 * 51 == 2499
    split = split_pairs(pairs)
    assert (len(split.train), len(split.eval), split.excluded) == (2024, 25, 450)
    assert split.reason is None


def test_who_when_has_comments_to_learn_from_and_no_pairs(
    data_folder: Path, tmp_path: Path
) -> None:
    library, ids = stored(data_folder, "who-when", tmp_path)
    built = build_examples(library.traces(ids), library.annotations(ids))
    assert len(built.examples) + sum(skipped.count for skipped in built.skipped) == 63
    assert all(example.feedback for example in built.examples)
    with pytest.raises(PairsError, match="Steps: 0 positive, 63 negative"):
        build_pairs(library.traces(ids), library.annotations(ids), 4000)
