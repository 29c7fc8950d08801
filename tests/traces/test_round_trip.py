"""Whatever can be imported comes back from an export unchanged."""

from collections.abc import Collection
from datetime import UTC, datetime

from hypothesis import given, settings
from hypothesis import strategies as st

from stash_mcp.models import Annotation, Quote, Step, Trace
from stash_mcp.traces.annotations import export_annotation, make_annotation, parse_annotations
from stash_mcp.traces.formats import parse_traces
from stash_mcp.traces.stash import export_trace


def no_time(annotation: Annotation, dated: Collection[str]) -> datetime:
    raise AssertionError("each of them has its own")


TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=30)
SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | TEXT
FINITE = SCALARS.filter(lambda value: value not in (float("inf"), float("-inf")))
VALUES = st.recursive(
    FINITE, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3)
)
OBJECTS = st.dictionaries(TEXT, VALUES, max_size=3)
STEPS = st.builds(
    Step,
    role=st.sampled_from(["user", "assistant", "tool"]),
    content=TEXT,
    tool_name=st.none() | TEXT,
    tool_input=st.none() | OBJECTS,
    tool_call_id=st.none() | TEXT,
    metadata=OBJECTS,
)
TRACES = st.builds(
    Trace,
    id=TEXT.filter(str.strip),
    title=st.none() | TEXT,
    metadata=OBJECTS,
    steps=st.lists(STEPS, min_size=1, max_size=4).map(tuple),
)
ANNOTATIONS = st.builds(
    make_annotation,
    trace_id=TEXT.filter(str.strip),
    created_at=st.datetimes(timezones=st.just(UTC)),
    step_index=st.none() | st.integers(0, 9),
    rating=st.sampled_from([None, 1, -1]),
    comment=st.none() | TEXT,
    quote=st.none() | st.builds(Quote, text=TEXT, prefix=TEXT, suffix=TEXT),
    author=st.none() | TEXT,
)


@settings(deadline=None)
@given(st.lists(TRACES, min_size=1, max_size=4, unique_by=lambda trace: trace.id))
def test_exported_traces_come_back_equal(traces: list[Trace]) -> None:
    data = "\n".join(export_trace(trace) for trace in traces).encode()
    back = parse_traces(data)
    assert back.format == "stash"
    # As JSON too, where 1, 1.0 and True differ.
    assert [trace.model_dump_json() for trace in back.traces] == [
        trace.model_dump_json() for trace in traces
    ]


@settings(deadline=None)
@given(st.lists(ANNOTATIONS, min_size=1, max_size=4, unique_by=lambda annotation: annotation.id))
def test_exported_annotations_come_back_equal(annotations: list[Annotation]) -> None:
    data = "\n".join(export_annotation(annotation) for annotation in annotations).encode()
    assert parse_annotations(data, no_time) == annotations


def test_the_deepest_tool_input_that_is_read_can_be_exported_and_read_again() -> None:
    deep = '{"a":' * 96 + "{}" + "}" * 96
    call = f'{{"id":"c","function":{{"name":"f","arguments":{deep}}}}}'
    data = f'[{{"role":"user","content":""}},{{"role":"assistant","tool_calls":[{call}]}}]'
    given_as_text = data.replace(deep, '"' + deep.replace('"', '\\"') + '"')
    [trace] = parse_traces(given_as_text.encode()).traces
    assert trace.steps[1].metadata == {}
    assert parse_traces(export_trace(trace).encode()).traces == (trace,)
