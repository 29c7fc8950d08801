import json
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from support.staging import Stage, conversation, jsonl


def write(path: Path, data: bytes) -> str:
    path.write_bytes(data)
    return str(path)


def test_import_says_what_it_stored(command, stage: Stage, tmp_path: Path) -> None:
    file = write(tmp_path / "talks.jsonl", jsonl([conversation("a"), conversation("b")]))
    first = command("import", file)
    again = command("import", file)
    assert first.code == again.code == 0
    assert "Imported 2 conversations (stash): 2 new, 0 replaced, 0 unchanged." in first.out
    assert "0 new, 0 replaced, 2 unchanged" in again.out
    assert "Next:" in first.err


def test_import_takes_a_path_relative_to_the_working_folder(command, stage: Stage) -> None:
    write(stage.settings.project_dir / "here.jsonl", jsonl([conversation("a")]))
    assert json.loads(command("import", "here.jsonl", "--json").out)["trace_ids"] == ["a"]


@pytest.mark.parametrize("rows", [2, 41])
def test_an_import_of_a_format_without_ids_lists_those_that_it_made(
    command, stage: Stage, tmp_path: Path, rows: int
) -> None:
    talks = [{"messages": [{"role": "user", "content": f"Number {row}?"}]} for row in range(rows)]
    file = write(tmp_path / "chat.jsonl", jsonl(talks))
    lines = command("import", file).out.splitlines()
    ids = json.loads(command("import", file, "--json").out)["trace_ids"]
    assert len(ids) == rows
    start = lines.index("Their ids, in the file's order:") + 1
    shown = ids[:40]
    assert lines[start : start + len(shown)] == shown
    assert ("and 1 more; the same import again with --json gives all." in lines) == (rows == 41)


def test_annotations_can_be_imported_alone(command, stage: Stage, tmp_path: Path) -> None:
    stage.conversations(2)
    note = {"trace_id": "c-00", "rating": 1, "created_at": "2026-01-01T00:00:00Z"}
    file = write(tmp_path / "notes.jsonl", json.dumps(note).encode())
    assert "Added 1 annotation." in command("import", "--annotations", file).out


@pytest.mark.parametrize(
    ("name", "data", "problem"),
    [
        ("gone.jsonl", None, "There is no file"),
        ("empty.jsonl", b"", "empty"),
        ("cut.jsonl", b'{"id": "a", "steps": [', "Line 1"),
        ("latin.jsonl", b'{"id": "\xe9"}\n', "UTF-8"),
        ("list.jsonl", b"[1, 2]\n", "Line 1"),
    ],
)
def test_a_file_that_cannot_be_imported_is_refused_in_words(
    command, stage: Stage, tmp_path: Path, name: str, data: bytes | None, problem: str
) -> None:
    if data is not None:
        write(tmp_path / name, data)
    said = command("import", str(tmp_path / name))
    assert (said.code, said.out) == (1, "")
    assert said.err.startswith("Error: ")
    assert problem in said.err
    assert stage.backend.list_traces(limit=1, offset=0).total == 0


def test_an_annotation_is_recorded_shown_flagged_and_unflagged(command, stage: Stage) -> None:
    stage.conversations(1)
    made = command(
        *("annotate", "c-00", "--step", "1", "--rating", "down", "--comment", "Too short."),
        *("--quote", "order number", "--author", "Ada", "--json"),
    )
    annotation = json.loads(made.out)
    assert (annotation["rating"], annotation["quote"]["text"]) == (-1, "order number")
    shown = command("trace", "c-00").out
    assert "[1] assistant" in shown
    assert 'down: Too short. on "order number" (Ada)' in shown
    command("flag", annotation["id"], "--note", "misread")
    assert "marked as wrong: misread" in command("trace", "c-00").out
    command("flag", annotation["id"], "--undo")
    assert "marked as wrong" not in command("trace", "c-00").out


def test_an_annotation_that_says_nothing_is_refused(command, stage: Stage) -> None:
    stage.conversations(1)
    said = command("annotate", "c-00")
    assert said.code == 1
    assert "neither a rating nor a comment" in said.err


def test_the_list_is_a_table_for_people_and_a_page_for_programs(command, stage: Stage) -> None:
    stage.conversations(3)
    table = command("traces", "--limit", "2")
    assert table.out.split()[:6] == ["id", "title", "steps", "up", "down", "comments"]
    assert "c-01" in table.out
    assert "2 of 3 conversations; more with --offset 2" in table.err
    page = json.loads(command("traces", "--json", "--offset", "2").out)
    assert [row["id"] for row in page["traces"]] == ["c-02"]
    assert command("traces", "--no-commented").out.split()[6:] == []


def test_a_conversation_cannot_steer_the_terminal(command, stage: Stage) -> None:
    evil = "\x1b]0;owned\x07 [bold]not markup[/bold] \x9b2J"
    row = conversation("evil", evil, "fine")
    stage.backend.import_traces(jsonl([{**row, "title": evil}]))
    for said in (command("trace", "evil").out, command("traces").out):
        assert not {"\x1b", "\x07", "\x9b"} & set(said)
        assert "\\x1b]0;owned\\x07 [bold]not markup[/bold]" in said


def test_a_tool_call_is_shown_with_its_input_as_json(command, stage: Stage) -> None:
    call = {"role": "assistant", "content": "", "tool_name": "look_up", "tool_input": {"ü": None}}
    row = {"id": "tool", "steps": [{"role": "user", "content": "hi"}, call]}
    stage.backend.import_traces(jsonl([row]))
    assert '[1] assistant calls look_up({"ü": null})' in command("trace", "tool").out


def test_an_export_is_what_import_reads(command, stage: Stage, tmp_path: Path) -> None:
    stage.conversations(3)
    printed = command("export", "traces").out
    file = tmp_path / "notes.jsonl"
    written = json.loads(command("export", "annotations", str(file), "--json").out)
    assert written == {"path": str(file), "lines": 3}
    other = Stage(tmp_path / "other")
    report = other.backend.import_traces(printed.encode(), annotations=file.read_bytes())
    assert (report.added, report.annotations_added) == (3, 3)
    assert other.backend.get_trace("c-01").trace == stage.backend.get_trace("c-01").trace


def test_an_export_as_json_wants_a_file(command, stage: Stage) -> None:
    assert command("export", "traces", "--json").code == 2


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no pipes with names")
def test_an_export_goes_through_a_pipe_and_leaves_it_one(
    command, stage: Stage, tmp_path: Path
) -> None:
    stage.conversations(2)
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with ThreadPoolExecutor(1) as pool:
        reading = pool.submit(pipe.read_text, encoding="utf-8")
        assert command("export", "traces", str(pipe)).code == 0
        assert len(reading.result(timeout=30).splitlines()) == 2
    assert pipe.is_fifo()


def test_an_export_onto_a_link_writes_the_file_that_it_names(
    command, stage: Stage, tmp_path: Path
) -> None:
    stage.conversations(2)
    (tmp_path / "real.jsonl").write_text("old", encoding="utf-8")
    link = tmp_path / "link.jsonl"
    link.symlink_to(tmp_path / "real.jsonl")
    assert command("export", "traces", str(link)).code == 1
    assert (tmp_path / "real.jsonl").read_text(encoding="utf-8") == "old"
    assert command("export", "traces", str(link), "--force").code == 0
    assert link.is_symlink()
    assert len((tmp_path / "real.jsonl").read_text(encoding="utf-8").splitlines()) == 2
