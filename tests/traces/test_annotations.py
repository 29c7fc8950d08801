"""Annotations in and out, and the rules that they must keep."""

import json
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from stash_mcp.errors import AnnotationError
from stash_mcp.models import Annotation, Quote, Step, Trace
from stash_mcp.traces.annotations import (
    check_annotation,
    export_annotation,
    make_annotation,
    parse_annotations,
)

NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)
LINE = {
    "trace_id": "0b9c",
    "trace_external_id": "order-1",
    "step_index": 2,
    "rating": -1,
    "comment": "Too long.",
    "quote": {"text": "very", "prefix": "so ", "suffix": " long"},
    "label_error": True,
    "label_error_note": "meant +1",
    "author": "ana",
    "created_at": "2026-01-31T12:00:00+00:00",
}
TRACE = Trace(
    id="order-1",
    steps=(
        Step(role="system", content="Be kind."),
        Step(role="user", content="Where is it?"),
        Step(role="assistant", content="It is so very long underway."),
    ),
)


def jsonl(*records: Any) -> bytes:
    return "".join(f"{json.dumps(record)}\n" for record in records).encode()


def parsed(data: bytes) -> list[Annotation]:
    return parse_annotations(data, lambda _row, _dated: NOON)


def made(**fields: Any) -> Annotation:
    return make_annotation(**{"trace_id": "order-1", "created_at": NOON, **fields})


def without_id(annotation: Annotation) -> dict[str, Any]:
    return annotation.model_dump(exclude={"id"})


def test_every_field_of_the_export_is_read() -> None:
    [annotation] = parsed(jsonl(LINE))
    assert without_id(annotation) == {
        "trace_id": "order-1",
        "step_index": 2,
        "rating": -1,
        "comment": "Too long.",
        "quote": {"text": "very", "prefix": "so ", "suffix": " long"},
        "label_error": True,
        "label_error_note": "meant +1",
        "author": "ana",
        "created_at": NOON,
    }


def test_the_trace_id_counts_where_there_is_no_external_one() -> None:
    [annotation] = parsed(jsonl({**LINE, "trace_external_id": None}))
    assert annotation.trace_id == "0b9c"


def test_fields_may_be_missing_where_they_may_be_null() -> None:
    few = {"trace_id": "order-1", "rating": 1, "created_at": "2026-01-31T12:00:00Z"}
    assert parsed(jsonl(few)) == [made(rating=1)]


@pytest.mark.parametrize(
    "text",
    ["2026-01-31T12:00:00Z", "2026-01-31T12:00:00", "2026-01-31T14:00:00+02:00"],
)
def test_times_are_kept_as_utc(text: str) -> None:
    [annotation] = parsed(jsonl({**LINE, "created_at": text}))
    assert annotation.created_at.isoformat() == "2026-01-31T12:00:00+00:00"


def test_the_same_file_gives_the_same_ids() -> None:
    data = jsonl(LINE, {**LINE, "step_index": 1})
    assert parsed(data) == parsed(data)


def test_equal_annotations_of_one_file_stay_separate() -> None:
    first, second = parsed(jsonl(LINE, LINE))
    assert first.id != second.id
    assert without_id(first) == without_id(second)


def test_an_exported_annotation_comes_back_with_the_id_that_it_was_made_with() -> None:
    annotation = made(step_index=2, rating=-1, comment="So\u2028so", quote=Quote(text="very"))
    line = export_annotation(annotation)
    assert line.splitlines() == [line]
    assert parsed(line.encode()) == [annotation]


def test_the_exported_line_has_the_shape_of_the_contract() -> None:
    [annotation] = parsed(jsonl(LINE))
    exported = json.loads(export_annotation(annotation))
    assert exported == {**LINE, "trace_id": "order-1"}
    assert list(exported) == list(LINE)


def test_flagging_a_label_does_not_change_its_id() -> None:
    [flagged] = parsed(jsonl(LINE))
    [unflagged] = parsed(jsonl({**LINE, "label_error": False, "label_error_note": None}))
    assert flagged.id == unflagged.id


def test_the_id_does_not_depend_on_the_time_zone() -> None:
    local = NOON.astimezone(timezone(timedelta(hours=9)))
    assert made(rating=1, created_at=local) == made(rating=1)


def test_a_given_id_is_kept() -> None:
    assert made(rating=1, annotation_id="a-mine").id == "a-mine"


@pytest.mark.parametrize("comment", ["", "  \n\t"])
def test_a_blank_comment_counts_as_none(comment: str) -> None:
    assert made(rating=1, comment=comment).comment is None
    assert parsed(jsonl({**LINE, "comment": comment}))[0].comment is None


@pytest.mark.parametrize(
    ("field", "value", "problem"),
    [
        ("rating", 0, "0 is not a rating"),
        ("rating", 2, "2 is not a rating"),
        ("rating", True, "true is not a whole number"),
        ("rating", 1.0, "the number 1.0 is not a whole number"),
        ("rating", "1", "'1' is not a whole number"),
        ("step_index", -1, "-1 is below 0"),
        ("step_index", 1.5, "the number 1.5 is not a whole number"),
        ("comment", 7, "the number 7 is not a string"),
        ("quote", "very", "'very' is not an object"),
        ("label_error", "no", "'no' is not true or false"),
        ("author", [], "an array is not a string"),
        ("created_at", "yesterday", "'yesterday' is not a time"),
        ("created_at", "0001-01-01T00:00:00+05:00", "is not a time"),
        ("created_at", 7, "the number 7 is not a string"),
        ("trace_external_id", 7, "the number 7 is not a string"),
    ],
)
def test_a_wrong_field_is_named_with_its_line(field: str, value: Any, problem: str) -> None:
    with pytest.raises(AnnotationError) as caught:
        parsed(jsonl(LINE, {**LINE, field: value}))
    assert caught.value.problem.startswith(f"Line 2, `{field}`: ")
    assert problem in caught.value.problem


def test_a_missing_field_is_named() -> None:
    record = {**LINE, "trace_external_id": None}
    del record["trace_id"]
    with pytest.raises(AnnotationError, match="Line 1, `trace_id`: is missing"):
        parsed(jsonl(record))


@pytest.mark.parametrize("line", [{**LINE, "created_at": None}, {"trace_id": "t", "rating": 1}])
def test_a_line_without_a_time_is_given_one(line: dict[str, Any]) -> None:
    [annotation] = parsed(jsonl(line))
    assert annotation.created_at == NOON
    assert parsed(export_annotation(annotation).encode()) == [annotation]


def test_a_quote_without_text_is_named() -> None:
    with pytest.raises(AnnotationError, match=r"Line 1, `quote.text`: is missing"):
        parsed(jsonl({**LINE, "quote": {"prefix": "a"}}))


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"", "The file is empty."),
        (b"[1]\n", "Line 1 is an array, not an object."),
        (jsonl(LINE) + b'{"trace_id": "a', "Line 2 is cut off: the JSON ends in the middle."),
        (b'{"comment":"\xff"}\n', "Line 1 is not UTF-8: byte 13 is 0xff."),
        (rb'{"comment":"\ud800"}', "Line 1 has half of a surrogate pair (U+D800) in `comment`."),
    ],
)
def test_a_file_that_cannot_be_read_is_an_annotation_error(data: bytes, problem: str) -> None:
    with pytest.raises(AnnotationError) as caught:
        parsed(data)
    assert caught.value.problem == problem


@pytest.mark.parametrize(
    "fields",
    [
        {"rating": 1},
        {"comment": "Good."},
        {"step_index": 0, "comment": "A system step may be commented on."},
        {"step_index": 2, "rating": -1, "quote": Quote(text="so very long")},
        {"step_index": 1, "rating": 1},
    ],
)
def test_an_annotation_that_fits_is_accepted(fields: dict[str, Any]) -> None:
    annotation = made(**fields)
    check_annotation(annotation, TRACE)
    assert annotation.trace_id == TRACE.id


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({}, "trace 'order-1' has neither a rating nor a comment."),
        ({"comment": " "}, "trace 'order-1' has neither a rating nor a comment."),
        (
            {"step_index": 0, "rating": 1},
            "step 0 of trace 'order-1' rates a system step, which no reward model sees.",
        ),
        (
            {"step_index": 3, "rating": 1},
            "step 3 of trace 'order-1' does not fit: there are 3 steps.",
        ),
        ({"step_index": 10**30, "rating": 1}, "does not fit: there are 3 steps."),
        ({"step_index": -1, "rating": 1}, "does not fit: there are 3 steps."),
        (
            {"rating": 1, "quote": Quote(text="so")},
            "trace 'order-1' quotes a passage without naming its step.",
        ),
        (
            {"step_index": 1, "comment": "Hm", "quote": Quote(text="very")},
            "quotes 'very', which that step's content does not contain.",
        ),
        (
            {"step_index": 1, "comment": "Hm", "quote": Quote(text="")},
            "quotes '', which that step's content does not contain.",
        ),
        ({"comment": "a\0b"}, "contains a NUL character or half of a surrogate pair."),
        ({"comment": "a\ud800b"}, "contains a NUL character or half of a surrogate pair."),
        (
            {"rating": 1, "author": "a\udcff"},
            "contains a NUL character or half of a surrogate pair.",
        ),
    ],
)
def test_an_annotation_that_does_not_fit_is_refused(fields: dict[str, Any], problem: str) -> None:
    annotation = made(annotation_id="a-1", **fields)
    with pytest.raises(AnnotationError) as caught:
        check_annotation(annotation, TRACE)
    assert caught.value.problem.endswith(problem)
    assert caught.value.fix
