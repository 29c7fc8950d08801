"""Files of conversations that cannot be read, or only just, at both doors."""

import json
from typing import Any

import pytest
from support.doors import Case, Doors, at_commands, at_tools, refused_by_command, refused_by_tool
from support.staging import conversation

GOOD = json.dumps(conversation("good"))
SYSTEM = {"role": "system", "content": "You help."}
USER = {"role": "user", "content": "Where is my parcel?"}
CALL = {"role": "assistant", "content": "", "tool_name": "look_up", "tool_input": [1]}
WIZARD = {"role": "wizard", "content": "Abracadabra."}
MB = 1_000_000
_ALL_FORMATS = "Correct what is said of the format that you meant"


def line(*steps: dict[str, Any]) -> bytes:
    return (json.dumps({"id": "bad", "steps": steps}) + "\n").encode()


def talks(id: str, data: bytes, *says: str, format: str = "auto") -> Case:
    return Case(
        id,
        says,
        tool="import_traces",
        arguments={"path": "talks.jsonl", "format": format},
        command=("import", "talks.jsonl", "--format", format),
        files={"talks.jsonl": data},
    )


CASES = [
    talks("an empty file", b"", "The file is empty", "Export it again"),
    talks("a file of blank lines", b"\n \r\n\n", "The file is empty", "Export it again"),
    talks(
        "a truncated last line",
        f"{GOOD}\n{GOOD[:-20]}".encode(),
        "Line 2 is cut off",
        "Export or copy the file again",
    ),
    talks(
        "a last line cut inside a character",
        b'{"id": "a", "title": "\xc3',
        "Line 1 is cut off",
        "Export or copy the file again",
    ),
    talks(
        "invalid UTF-8",
        GOOD.encode() + b'\n{"id": "\xff"}\n' + GOOD.encode(),
        "Line 2 is not UTF-8: byte 9 is 0xff",
        "Save the file as UTF-8",
    ),
    talks("a UTF-16 BOM", GOOD.encode("utf-16"), "UTF-16, not UTF-8", "Save it as UTF-8"),
    talks(
        "a line over the limit",
        b'{"id": "' + b"x" * (64 << 20) + b'"}',
        "Line 1 is 67,108,874 bytes long",
        "Shorten that conversation",
    ),
    talks(
        "a 50 MB line that is not JSON",
        b"x" * (50 * MB),
        "Line 1 is not JSON",
        "one JSON object on one line",
    ),
    talks(
        "an array of numbers",
        b"[1, 2]",
        "stash: Line 1 is an array, not an object",
        "openai_chat: Line 1, `messages[0]`: the number 1 is not an object",
        _ALL_FORMATS,
    ),
    talks(
        "a number",
        f"{GOOD}\n5\n".encode(),
        "Line 2 is the number 5, not an object",
        "JSON object on a line of its own",
        format="stash",
    ),
    talks("a string", b'"hello"\n', "Line 1 is a string, not an object", _ALL_FORMATS),
    talks("null", b"null\n", "Line 1 is null, not an object", _ALL_FORMATS),
    talks(
        "an unknown role",
        line(USER, WIZARD),
        "Line 1, `steps[1].role`: 'wizard' is not a role",
        "Use system, user, assistant or tool",
        format="stash",
    ),
    talks(
        "an unknown role of a format to be found out",
        line(USER, WIZARD),
        "stash: Line 1, `steps[1].role`: 'wizard' is not a role",
        _ALL_FORMATS,
    ),
    talks(
        "an unknown role of a message",
        json.dumps({"messages": [USER, WIZARD]}).encode(),
        "Line 1, `messages[1].role`: 'wizard' is not a role of this format",
        "Use system, developer, user, assistant, tool",
        format="openai_chat",
    ),
    talks(
        "a tool_input that is not an object",
        line(USER, CALL),
        "Line 1, `steps[1].tool_input`: an array is not an object",
        "Give an object",
        format="stash",
    ),
    talks(
        "only system steps",
        f"{GOOD}\n".encode() + line(SYSTEM, SYSTEM),
        "Line 2: the conversation has only system steps",
        "Leave it out, or add what the user and the assistant said",
        format="stash",
    ),
]


@pytest.mark.anyio
@at_tools(CASES)
async def test_the_tool_refuses_what_it_cannot_read_and_stores_none_of_it(
    case: Case, doors: Doors
) -> None:
    await refused_by_tool(case, doors)


@at_commands(CASES)
def test_the_command_refuses_what_it_cannot_read_and_stores_none_of_it(
    case: Case, doors: Doors
) -> None:
    refused_by_command(case, doors)


@pytest.mark.anyio
async def test_a_byte_order_mark_is_dropped_and_nothing_else(doors: Doors) -> None:
    project = doors.stage.settings.project_dir
    (project / "one.jsonl").write_bytes(GOOD.encode("utf-8-sig"))
    is_error, text = await doors.call("import_traces", path="one.jsonl")
    assert not is_error, text
    (project / "two.jsonl").write_bytes(json.dumps(conversation("two")).encode("utf-8-sig"))
    assert doors.command("import", "two.jsonl").code == 0
    exported = doors.command("export", "traces").out
    assert [json.loads(row) for row in exported.splitlines()] == [
        conversation("good"),
        conversation("two"),
    ]


@pytest.mark.anyio
async def test_a_50_mb_line_is_stored_whole_and_shown_in_part(doors: Doors) -> None:
    project = doors.stage.settings.project_dir
    long = conversation("long", "Where is it? " + "ä" * (25 * MB), "Tell me.")
    row = json.dumps(long, ensure_ascii=False).encode()
    assert len(row) > 50 * MB
    (project / "talks.jsonl").write_bytes(row)
    is_error, text = await doors.call("import_traces", path="talks.jsonl")
    assert not is_error, text
    is_error, text = await doors.call("get_trace", trace_id="long")
    assert not is_error
    assert len(text) < 10_000
    assert doors.command("import", "talks.jsonl").out.count("1 unchanged") == 1
    assert doors.command("export", "traces", "out.jsonl").code == 0
    assert json.loads((project / "out.jsonl").read_bytes()) == long
