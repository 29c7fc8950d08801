"""Parameters that several tools share, and how a function becomes a tool.

A text parameter that may be left out is a `str` with the default "": the SDK reads a string
given for any other type as JSON, which would turn a message such as `[1]` into a list.
"""

import inspect
from collections.abc import Callable
from typing import Annotated, Any, Literal

from mcp.server.mcpserver.tools import Tool
from mcp.types import ToolAnnotations
from pydantic import Field

from stash_mcp.server.schemas import LARGEST, slim, slim_result
from stash_mcp.settings import BackendName

Limit = Annotated[int, Field(ge=1, le=100, description="Rows at most")]
Offset = Annotated[int, Field(ge=0, le=LARGEST, description="next_offset of the last page")]
TraceId = Annotated[str, Field(min_length=1, description="As in list_traces")]
RunId = Annotated[str, Field(min_length=1, description="As in list_runs")]
JobId = Annotated[str, Field(min_length=1, description="Of a run, or of a model in training")]
TraceIds = Annotated[
    tuple[str, ...],
    Field(max_length=1000, description='Ids, or patterns such as "support-*"'),
]
Where = Annotated[
    Literal["default", "local", "stash"],
    Field(description="This machine, or the hosted Stash; a setting has the default"),
]
AtLeast0 = Annotated[int, Field(ge=0, le=LARGEST)]
AtLeast1 = Annotated[int, Field(ge=1, le=LARGEST)]
Above0 = Annotated[float, Field(gt=0, allow_inf_nan=False)]


def make_tool(
    function: Callable[..., Any],
    title: str,
    *,
    reads_only: bool = False,
    replaces: bool = False,
    idempotent: bool = False,
    calls_models: bool = False,
) -> Tool:
    """The tool with the function's own name; its docstring is the tool's description.

    replaces: it may replace something that a person made. calls_models: it leads to calls over
    the network, of models or of Stash.
    """
    tool = Tool.from_function(
        function,
        title=title,
        description=inspect.getdoc(function),
        # What is left out says the protocol's default, or nothing of a reader.
        annotations=ToolAnnotations(
            read_only_hint=reads_only or None,
            destructive_hint=None if reads_only else replaces,
            idempotent_hint=idempotent or None,
            open_world_hint=calls_models,
        ),
        structured_output=True,
    )
    tool.parameters = slim(tool.parameters)
    if tool.fn_metadata.output_schema is not None:
        tool.fn_metadata.output_schema = slim_result(tool.fn_metadata.output_schema)
    return tool


def side(where: Literal["default", "local", "stash"]) -> BackendName | None:
    """For `Backend.at`."""
    return None if where == "default" else where


def given(text: str) -> str | None:
    """A text argument; None where it was left out or is blank."""
    return text if text.strip() else None
