"""`import`, `annotate`, `flag`, `traces`, `trace`, `export`."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Literal

import typer

from stash_mcp.backends.base import AnnotationDraft, ImportReport, Side, TraceDetail
from stash_mcp.cli.characters import visible
from stash_mcp.cli.outputs import Force, refuse_a_file_that_is_there
from stash_mcp.cli.printing import print_json, print_raw, print_table, print_text
from stash_mcp.cli.session import Json, Session, Where, session_of
from stash_mcp.errors import StashMisfitError
from stash_mcp.models import Annotation, Quote, Step
from stash_mcp.server.counting import count
from stash_mcp.server.inputs import import_any, read_input
from stash_mcp.server.results import IDS_SHOWN, rating_word
from stash_mcp.storage.files import os_errors, write_atomic

TraceId = Annotated[str, typer.Argument(metavar="TRACE", help="Its id, as `traces` shows it.")]
_RATINGS: dict[str | None, Literal[1, -1] | None] = {"up": 1, "down": -1, None: None}


def register(app: typer.Typer) -> None:
    app.command("import")(import_)
    app.command("annotate")(annotate)
    app.command("flag")(flag)
    app.command("traces")(traces)
    app.command("trace")(trace)
    app.command("export")(export)


def import_(
    context: typer.Context,
    file: Annotated[
        str | None,
        typer.Argument(metavar="[FILE]", help="Conversations; leave out for annotations alone."),
    ] = None,
    annotations: Annotated[
        str | None, typer.Option(metavar="FILE", help="Reviewers' annotations, JSONL.")
    ] = None,
    format: Annotated[
        str, typer.Option(help="auto, stash, openai_chat or anthropic_messages.")
    ] = "auto",
    backend: Where = None,
    as_json: Json = False,
) -> None:
    """Bring conversations, and what reviewers said of them, into the library.

    All or nothing is stored. A conversation whose id is known already gets the new steps and loses
    the annotations on steps that changed.
    """
    session = session_of(context)
    here = Path.cwd()
    report = import_any(
        session.backend.at(backend),
        None if file is None else read_input(file, here),
        None if annotations is None else read_input(annotations, here),
        format,
    )
    if as_json:
        print_json(session.out, report)
        return
    _print_report(session, report)


def _print_report(session: Session, report: ImportReport) -> None:
    imported = f"{count(report.imported, 'conversation')} ({report.format})"
    if report.backend == "stash":
        print_text(session.out, f"Imported {imported} into Stash, whose ids are:")
        for trace_id in report.trace_ids:
            print_text(session.out, trace_id)
        return
    print_text(
        session.out,
        f"Imported {imported}: "
        f"{report.added} new, {report.replaced} replaced, {report.unchanged} unchanged.",
    )
    print_text(session.out, f"Added {count(report.annotations_added, 'annotation')}.")
    if report.annotations_removed:
        removed = count(report.annotations_removed, "annotation")
        print_text(session.out, f"Removed {removed} on steps that were replaced.")
    if report.format != "stash":
        # The file has no ids, so these are made up, and annotations need them.
        print_text(session.out, "Their ids, in the file's order:")
        _print_ids(session, report.trace_ids)
    print_text(session.err, "Next: stash-skills traces, annotate, train", style="dim")


def _print_ids(session: Session, ids: Sequence[str]) -> None:
    """The first ones; the same import again, which changes nothing, gives them all as JSON."""
    for trace_id in ids[:IDS_SHOWN]:
        print_text(session.out, trace_id)
    if len(ids) > IDS_SHOWN:
        print_text(
            session.out,
            f"and {len(ids) - IDS_SHOWN} more; the same import again with --json gives all.",
        )


def annotate(
    context: typer.Context,
    trace_id: TraceId,
    step: Annotated[
        int | None, typer.Option(min=0, help="Its number, as `trace` shows it; else the whole.")
    ] = None,
    rating: Annotated[
        Literal["up", "down"] | None, typer.Option(help="Not on system steps.")
    ] = None,
    comment: Annotated[
        str | None, typer.Option(help="What was good or bad, and what instead.")
    ] = None,
    quote: Annotated[
        str | None, typer.Option(help="The words of the step that it is about, exactly.")
    ] = None,
    author: Annotated[str | None, typer.Option(help="The reviewer's name.")] = None,
    as_json: Json = False,
) -> None:
    """Rate or comment on a conversation, or on one of its steps."""
    session = session_of(context)
    draft = AnnotationDraft(
        trace_id=trace_id,
        step_index=step,
        rating=_RATINGS[rating],
        comment=comment,
        quote=Quote(text=quote) if quote else None,
        author=author,
    )
    _print_annotation(session, session.backend.annotate(draft), "Recorded", as_json)


def flag(
    context: typer.Context,
    annotation_id: Annotated[
        str, typer.Argument(metavar="ANNOTATION", help="Its id, as `trace` shows it.")
    ],
    note: Annotated[str | None, typer.Option(help="Why it is wrong.")] = None,
    undo: Annotated[bool, typer.Option("--undo", help="Take the mark back.")] = False,
    as_json: Json = False,
) -> None:
    """Mark an annotation as wrong: it stays visible, out of training and of runs."""
    session = session_of(context)
    annotation = session.backend.flag_annotation(annotation_id, note, flagged=not undo)
    _print_annotation(session, annotation, "Unmarked" if undo else "Marked", as_json)


def _print_annotation(session: Session, row: Annotation, verb: str, as_json: bool) -> None:
    if as_json:
        print_json(session.out, row)
        return
    place = "" if row.step_index is None else f", step {row.step_index}"
    print_text(session.out, f"{verb} {row.id} on {row.trace_id}{place}.")


def traces(
    context: typer.Context,
    text: Annotated[str | None, typer.Option(help="Only those with it in id or title.")] = None,
    commented: Annotated[
        bool | None, typer.Option(help="Only those with, or without, comments.")
    ] = None,
    limit: Annotated[int, typer.Option(min=1, max=10**9, help="How many rows.")] = 50,
    offset: Annotated[int, typer.Option(min=0, max=10**9, help="How many rows to skip.")] = 0,
    backend: Where = None,
    as_json: Json = False,
) -> None:
    """List the conversations of the library, or of Stash."""
    session = session_of(context)
    side = session.backend.at(backend)
    page = side.list_traces(limit=limit, offset=offset, text=text, commented=commented)
    if as_json:
        print_json(session.out, page)
        return
    print_table(
        session.out,
        ("id", "title", "steps", "up", "down", "comments"),
        [
            (row.id, row.title, row.steps, row.positive, row.negative, row.comments)
            for row in page.traces
        ],
    )
    shown = f"{len(page.traces)} of {count(page.total, 'conversation')}"
    more = f"; more with --offset {offset + limit}" if offset + limit < page.total else ""
    print_text(session.err, shown + more, style="dim")
    _say_missing(session, page.missing)


def _say_missing(session: Session, missing: str | None) -> None:
    if missing is not None:
        print_text(session.err, missing)


def trace(context: typer.Context, trace_id: TraceId, as_json: Json = False) -> None:
    """Show one conversation with its step numbers and annotations."""
    session = session_of(context)
    detail = session.backend.get_trace(trace_id)
    if as_json:
        print_json(session.out, detail)
        return
    _print_trace(session, detail)
    _say_missing(session, detail.missing)


def _print_trace(session: Session, detail: TraceDetail) -> None:
    title = f" - {detail.trace.title}" if detail.trace.title else ""
    print_text(session.out, f"{detail.trace.id}{title}", style="bold")
    _print_notes(session, detail, None)
    for index, step in enumerate(detail.trace.steps):
        print_text(session.out, f"\n[{index}] {_heading(step)}", style="bold")
        if step.content:
            print_raw(session.out, step.content)
        _print_notes(session, detail, index)


def _heading(step: Step) -> str:
    if step.tool_name is None:
        return step.role
    if step.role != "assistant":
        return f"{step.role} {step.tool_name}"
    arguments = json.dumps(step.tool_input, ensure_ascii=False)
    return f"{step.role} calls {step.tool_name}({arguments})"


def _print_notes(session: Session, detail: TraceDetail, step: int | None) -> None:
    for row in detail.annotations:
        if row.step_index == step:
            print_text(session.out, f"  > {_note(row)}", style="yellow")


def _note(row: Annotation) -> str:
    words = [rating_word(row.rating), row.comment]
    said = ": ".join(word for word in words if word)
    quoted = f' on "{row.quote.text}"' if row.quote else ""
    author = f" ({row.author})" if row.author else ""
    wrong = f" [marked as wrong: {row.label_error_note or 'no note'}]" if row.label_error else ""
    return f"{said}{quoted}{author}{wrong} [{row.id}]"


def export(
    context: typer.Context,
    what: Annotated[Literal["traces", "annotations"], typer.Argument(help="What to write.")],
    file: Annotated[
        Path | None, typer.Argument(metavar="[FILE]", help="Where to; else standard output.")
    ] = None,
    force: Force = False,
    backend: Where = None,
    as_json: Json = False,
) -> None:
    """Write all conversations or all annotations as JSONL, as `import` reads them.

    A file that is there is replaced only with --force.

    With --json, a FILE is needed; the value printed says what was written.
    """
    session = session_of(context)
    if file is None:
        if as_json:
            raise typer.BadParameter("--json needs a FILE; without one the export itself is JSON.")
        for line in _lines(session.backend.at(backend), what):
            shown = visible(line) if session.out.is_terminal else line
            session.out.file.write(f"{shown}\n")
        return
    refuse_a_file_that_is_there(file.absolute(), force=force)
    lines, misfit = _all_lines(session.backend.at(backend), what)
    _write(file.absolute(), "".join(f"{line}\n" for line in lines))
    if misfit is not None:
        raise misfit
    if as_json:
        print_json(session.out, {"path": str(file.absolute()), "lines": len(lines)})
        return
    print_text(session.out, f"Wrote {count(len(lines), 'line')} to {file}.")


def _write(path: Path, text: str) -> None:
    """A file whole or not at all, the one that a link names; into a pipe or a device as it is."""
    if path.exists() and not path.is_file():
        with os_errors("write", path), path.open("w", encoding="utf-8", newline="\n") as stream:
            stream.write(text)
        return
    write_atomic(path.resolve(), text)


def _all_lines(
    backend: Side, what: Literal["traces", "annotations"]
) -> tuple[list[str], StashMisfitError | None]:
    """Those that can be read, and what says that some cannot."""
    lines: list[str] = []
    try:
        lines.extend(_lines(backend, what))
    except StashMisfitError as error:
        return lines, error
    return lines, None


def _lines(backend: Side, what: Literal["traces", "annotations"]) -> Iterator[str]:
    return backend.export_traces() if what == "traces" else backend.export_annotations()
