"""Import of the real conversations, where they are at hand."""

from collections.abc import Collection
from datetime import datetime
from pathlib import Path

import pytest

from stash_mcp.models import Annotation
from stash_mcp.traces.annotations import check_annotation, export_annotation, parse_annotations
from stash_mcp.traces.formats import parse_traces
from stash_mcp.traces.stash import export_trace


def no_time(annotation: Annotation, dated: Collection[str]) -> datetime:
    raise AssertionError("each of them has its own")


pytestmark = pytest.mark.data


@pytest.mark.parametrize(("name", "count"), [("tau-airline", 100), ("who-when", 63)])
def test_real_conversations_and_their_annotations_import_and_export(
    data_folder: Path, name: str, count: int
) -> None:
    parsed = parse_traces((data_folder / f"{name}.traces.jsonl").read_bytes())
    assert (parsed.format, len(parsed.traces)) == ("stash", count)
    exported = "\n".join(map(export_trace, parsed.traces)).encode()
    assert parse_traces(exported) == parsed

    traces = {trace.id: trace for trace in parsed.traces}
    annotations = parse_annotations(
        (data_folder / f"{name}.annotations.jsonl").read_bytes(), no_time
    )
    assert len({annotation.id for annotation in annotations}) == count
    for annotation in annotations:
        check_annotation(annotation, traces[annotation.trace_id])
    lines = "\n".join(map(export_annotation, annotations)).encode()
    assert parse_annotations(lines, no_time) == annotations
