"""Tools for conversations and what reviewers say of them."""

from pathlib import Path
from typing import Annotated, Literal

from mcp.server.mcpserver.tools import Tool
from pydantic import Field

from stash_mcp.backends.base import AnnotationDraft
from stash_mcp.errors import InputError
from stash_mcp.models import Quote
from stash_mcp.server.inputs import import_any, read_input
from stash_mcp.server.opening import LazyBackend
from stash_mcp.server.parameters import (
    AtLeast0,
    Limit,
    Offset,
    TraceId,
    Where,
    given,
    make_tool,
    side,
)
from stash_mcp.server.results import (
    AnnotateResult,
    ImportResult,
    TraceList,
    TraceView,
)
from stash_mcp.server.schemas import LARGEST
from stash_mcp.server.step_text import WHOLE, step_text

Rating = Literal["up", "down", "none"]
_RATINGS: dict[Rating, Literal[1, -1] | None] = {"up": 1, "down": -1, "none": None}


class TraceTools:
    def __init__(self, backend: LazyBackend, project_dir: Path) -> None:
        self._backend = backend
        self._project_dir = project_dir

    def tools(self) -> list[Tool]:
        return [
            make_tool(
                self.import_traces,
                "Import conversations",
                replaces=True,
                idempotent=True,
                calls_models=True,
            ),
            make_tool(self.list_traces, "List conversations", reads_only=True, calls_models=True),
            make_tool(self.get_trace, "Read a conversation", reads_only=True, calls_models=True),
            make_tool(self.annotate_trace, "Rate or comment on a conversation", calls_models=True),
            make_tool(
                self.flag_annotation,
                "Mark an annotation as wrong",
                idempotent=True,
                calls_models=True,
            ),
        ]

    def import_traces(
        self,
        path: Annotated[
            str, Field(description="File on this machine; relative to the project's folder")
        ] = "",
        data: Annotated[str, Field(description="The same as text, instead of path")] = "",
        format: Annotated[
            str, Field(description="auto, stash, openai_chat or anthropic_messages")
        ] = "auto",
        annotations_path: Annotated[
            str, Field(description="File of reviewers' annotations, as exported: JSONL")
        ] = "",
        annotations_data: Annotated[
            str, Field(description="The same as text, instead of annotations_path")
        ] = "",
        backend: Where = "default",
    ) -> ImportResult:
        """Use this first, to bring agent conversations into the library: from a JSONL file, or as
        text for a few short ones; optionally with reviewers' annotations.

        Give path or data, or annotations alone for known conversations. All or nothing is stored.
        A conversation whose id is known already gets the new steps and loses the annotations on
        steps that changed. Lines look like
        {"id": "a1", "steps": [{"role": "user", "content": "..."}, {"role": "assistant", ...}]} or
        {"messages": [...]}; annotations like {"trace_id": "a1", "step_index": 1, "rating": -1,
        "comment": "...", "created_at": "2026-01-31T12:00:00Z"}.
        """
        conversations = self._bytes(path, data)
        annotations = self._bytes(annotations_path, annotations_data)
        chosen = self._backend().at(side(backend))
        report = import_any(chosen, conversations, annotations, format)
        return ImportResult.of(report)

    def list_traces(
        self,
        text: Annotated[str, Field(description="Part of the id or title")] = "",
        reviewed: Annotated[
            Literal["any", "commented", "uncommented"],
            Field(description="With or without comments"),
        ] = "any",
        limit: Limit = 50,
        offset: Offset = 0,
        backend: Where = "default",
    ) -> TraceList:
        """Use this to see which conversations the library holds, and how each was reviewed."""
        page = (
            self._backend()
            .at(side(backend))
            .list_traces(
                limit=limit,
                offset=offset,
                text=given(text),
                commented=None if reviewed == "any" else reviewed == "commented",
            )
        )
        return TraceList.of(page, offset)

    def get_trace(
        self,
        trace_id: TraceId,
        from_step: Annotated[AtLeast0, Field(description="First step shown")] = 0,
        step_characters: Annotated[
            int, Field(ge=200, le=4000, description="Longer steps lose their middle")
        ] = 1500,
        step: Annotated[
            Annotated[int, Field(ge=WHOLE, le=LARGEST)] | None,
            Field(description="Only this one, in full; -1: of the whole"),
        ] = None,
        offset: Offset = 0,
    ) -> TraceView:
        """Use this to read one conversation with its step numbers and annotations, above all
        before annotate_trace.

        Go on with from_step=next_step. step=N gives all of a step, and of what was said of it, as
        text; go on with offset.
        """
        detail = self._backend().get_trace(trace_id)
        if step is not None:
            return TraceView.in_full(detail, step_text(detail, step), offset)
        return TraceView.of(detail, from_step, step_characters)

    def annotate_trace(
        self,
        trace_id: TraceId,
        step: Annotated[
            AtLeast0 | None,
            Field(
                description="As in get_trace; left out: the whole conversation",
            ),
        ] = None,
        rating: Annotated[Rating, Field(description="Not on system steps")] = "none",
        comment: Annotated[
            str, Field(max_length=20_000, description="What was good or bad, and what instead")
        ] = "",
        quote: Annotated[
            str,
            Field(max_length=20_000, description="The words of the step that it is about, exactly"),
        ] = "",
        author: Annotated[str, Field(max_length=200, description="The reviewer's name")] = "",
    ) -> AnnotateResult:
        """Use this to record what a reviewer says of a conversation or of one of its steps: a
        rating, a comment, or both.

        Record the person's judgement, in their words, not your own. Ratings train the reward
        model and need both good and bad conversations (or steps); comments guide the writing of
        the skill.
        """
        draft = AnnotationDraft(
            trace_id=trace_id,
            step_index=step,
            rating=_RATINGS[rating],
            comment=given(comment),
            quote=Quote(text=quote) if quote else None,
            author=given(author),
        )
        return AnnotateResult.of(self._backend().annotate(draft))

    def flag_annotation(
        self,
        annotation_id: Annotated[str, Field(min_length=1, description="As in get_trace")],
        note: Annotated[str, Field(max_length=2000, description="Why it is wrong")] = "",
        flagged: Annotated[bool, Field(description="False takes the mark back")] = True,
    ) -> AnnotateResult:
        """Use this when a rating or comment turns out to be wrong: it stays visible, and is kept
        out of every later training and run.
        """
        annotation = self._backend().flag_annotation(annotation_id, given(note), flagged=flagged)
        return AnnotateResult.of(annotation)

    def _bytes(self, path: str, data: str) -> bytes | None:
        if path and data:
            raise InputError("Both a file and text were given.", "Give the one or the other.")
        if path:
            return read_input(path, self._project_dir)
        return data.encode("utf-8", errors="surrogatepass") if data else None
