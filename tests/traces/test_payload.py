"""What a file may look like as bytes, and what is said of one that cannot be read."""

import json

import pytest

from stash_mcp.errors import AnnotationError, TraceFormatError
from stash_mcp.traces import payload
from stash_mcp.traces.payload import MAX_DEPTH, Row, parse_json, read_rows


def read(data: bytes) -> tuple[Row, ...]:
    return read_rows(data, TraceFormatError)


def problem_of(data: bytes) -> str:
    with pytest.raises(TraceFormatError) as caught:
        read(data)
    assert caught.value.fix
    return caught.value.problem


def nested(levels: int) -> bytes:
    return b'{"a":' + b"[" * (levels - 1) + b"]" * (levels - 1) + b"}"


def test_each_line_is_a_row_with_its_number_and_blank_lines_count() -> None:
    assert read(b'{"a":1}\n\n  \n{"a":2}\n') == (Row(1, {"a": 1}), Row(4, {"a": 2}))


def test_the_last_line_needs_no_line_end() -> None:
    assert read(b'{"a":1}\n{"a":2}')[-1] == Row(2, {"a": 2})


def test_windows_line_ends_are_accepted() -> None:
    assert read(b'{"a":1}\r\n{"a":2}\r\n') == (Row(1, {"a": 1}), Row(2, {"a": 2}))


def test_a_byte_order_mark_is_dropped() -> None:
    assert read(b'\xef\xbb\xbf{"a":1}\n') == (Row(1, {"a": 1}),)


def test_lines_end_at_lf_alone() -> None:
    text = "one\u2028two\u2029three\u0085four"
    line = json.dumps({"a": text}, ensure_ascii=False).encode()
    assert read(line + b"\n" + line) == (Row(1, {"a": text}), Row(2, {"a": text}))


@pytest.mark.parametrize("indent", [1, 4])
def test_one_document_may_be_spread_over_lines(indent: int) -> None:
    value = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}]
    assert read(json.dumps(value, indent=indent).encode()) == (Row(1, value),)


def test_an_array_with_one_element_a_line_is_one_document() -> None:
    assert read(b'[{"a":1},\n{"a":2}]') == (Row(1, [{"a": 1}, {"a": 2}]),)


@pytest.mark.parametrize("data", [b"", b"\n \r\n\t\n", b"\xef\xbb\xbf", b"\xef\xbb\xbf\n"])
def test_an_empty_file_is_refused(data: bytes) -> None:
    assert problem_of(data) == "The file is empty."


@pytest.mark.parametrize(
    "tail", [b'{"a":', b'{"a":"te', b'{"a":1', b'{"a":"caf\xc3', b'{"a":[1,', b'{"a":1\n']
)
def test_a_truncated_last_line_is_named_as_cut_off(tail: bytes) -> None:
    assert problem_of(b'{"a":1}\n{"a":2}\n' + tail).startswith("Line 3 is cut off")


def test_a_file_that_is_one_truncated_line_is_named_as_cut_off() -> None:
    assert problem_of(b'{"steps": [{"role": "user", "conte').startswith("Line 1 is cut off")


def test_bad_json_in_the_middle_names_line_and_column() -> None:
    problem = problem_of(b'{"a":1}\n{"a" 2}\n{"a":3}\n')
    assert problem == "Line 2 is not JSON: expecting ':' delimiter at column 6."


def test_bad_json_in_a_document_over_lines_names_its_own_line() -> None:
    assert problem_of(b'{\n "a": 1,\n "b" 2\n}\n').startswith("Line 3 is not JSON")


def test_invalid_utf8_names_line_and_byte() -> None:
    assert problem_of(b'{"a":1}\n{"a":"\xff"}\n') == "Line 2 is not UTF-8: byte 7 is 0xff."


def test_invalid_utf8_in_a_document_over_lines_names_its_own_line() -> None:
    assert problem_of(b'{\n"a":\n"\xff"}') == "Line 3 is not UTF-8: byte 2 is 0xff."


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_utf16_is_named(encoding: str) -> None:
    assert problem_of('\ufeff{"a":1}\n'.encode(encoding)) == "The file is UTF-16, not UTF-8."


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("NaN", "the number NaN"),
        ("-Infinity", "the number -Infinity"),
        ("1e999", "the number 1e999 (too large)"),
        ("9" * 5000, "the number 99999999999999999999… (5,000 digits)"),
        (r'"x\u0000y"', "a NUL character"),
        (r'"x\ud800y"', "half of a surrogate pair (U+D800)"),
        (r'"x\ud83d\ude00\uDE00"', "half of a surrogate pair (U+DE00)"),
    ],
)
def test_a_value_that_cannot_be_kept_is_named_with_line_and_field(value: str, reason: str) -> None:
    line = f'{{"steps":[{{}},{{"metadata":{{"a":["",{value}]}}}}]}}'.encode()
    assert problem_of(b"{}\n" + line) == f"Line 2 has {reason} in `steps[1].metadata.a[1]`."


def test_a_key_that_cannot_be_kept_is_named_with_its_object() -> None:
    assert problem_of(rb'{"a":{"x\u0000":1}}') == "Line 1 has a NUL character in `a (a key)`."


def test_a_raw_nul_byte_in_a_string_is_refused_with_its_column() -> None:
    assert problem_of(b'{"a":"x\0y"}') == (
        "Line 1 is not JSON: invalid control character at column 8."
    )


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (r'"\ud83d\ude00"', "\U0001f600"),
        (r'"\\u0000 and \\ud800"', r"\u0000 and \ud800"),
        ("1e308", 1e308),
        ("9" * 4000, int("9" * 4000)),
        ('"NaN"', "NaN"),
    ],
)
def test_what_only_looks_like_such_a_value_is_kept(text: str, value: object) -> None:
    assert read(f'{{"a":{text}}}'.encode()) == (Row(1, {"a": value}),)  # type: ignore[dict-item]


@pytest.mark.parametrize("levels", [MAX_DEPTH + 1, 100_000])
def test_deep_nesting_is_refused(levels: int) -> None:
    assert problem_of(nested(levels)).startswith("Line 1 nests objects or arrays more than 100")


def test_nesting_up_to_the_limit_is_read() -> None:
    assert len(read(nested(MAX_DEPTH))) == 1


def test_a_50_mb_line_is_read() -> None:
    text = "word " * 10_000_000
    assert read(b'{"a":"' + text.encode() + b'"}\n') == (Row(1, {"a": text}),)


def test_a_line_over_the_limit_is_refused_before_it_is_parsed() -> None:
    data = b'{"a":1}\n' + b"x" * (payload.MAX_LINE_BYTES + 1)
    assert problem_of(data) == "Line 2 is 67,108,865 bytes long; at most 67,108,864 are read."


def test_a_payload_over_the_limit_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(payload, "MAX_PAYLOAD_BYTES", 10)
    assert problem_of(b'{"a":1}\n{"a":2}\n') == (
        "The file has 16 bytes; at most 10 are read at once."
    )


def test_a_payload_of_countless_tiny_values_is_refused() -> None:
    assert "more than 10,000,000 commas" in problem_of(b"[" + b"[]," * 6_000_000 + b"1]")


def test_errors_are_of_the_kind_that_was_asked_for() -> None:
    with pytest.raises(AnnotationError):
        read_rows(b"", AnnotationError)


@pytest.mark.parametrize("text", ["{", "[NaN]", r'"\u0000"', "[" * 98 + "]" * 98, "[" * 100_000])
def test_json_inside_a_string_is_held_to_the_same_rules(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011
        parse_json(text)


def test_json_inside_a_string_is_parsed() -> None:
    assert parse_json('{"city": "Zürich", "n": 1.0}') == {"city": "Zürich", "n": 1.0}


def test_the_fix_speaks_of_what_the_file_holds() -> None:
    for error, noun in ((TraceFormatError, "conversation"), (AnnotationError, "annotation")):
        with pytest.raises(error) as caught:
            read_rows(b"oops\n{}\n", error)
        assert caught.value.fix.startswith(f"Each {noun} must be one JSON object on one line.")
