"""What a refused or failed tool call says: what happened, to what, and what to do next.

Clients show a model the text of an error and nothing else of it, so everything is in the text.
"""

import logging
from collections.abc import Mapping

from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import CallToolResult, Prompt, TextContent
from pydantic import ValidationError

from stash_mcp.errors import InputError, InstallConflictError, StashSkillsError
from stash_mcp.server.shortening import one_line, shorten, shorten_within

DIFF_BYTES = 24_000
SAID_CHARACTERS = 2000
"""Of a whole refusal: what was given is echoed, and may be of any length."""
NAME_CHARACTERS = 200
_GIVEN_CHARACTERS = 80
_NAMES_SHOWN = 10

logger = logging.getLogger(__name__)


def refusal(tool: str, error: ToolError | StashSkillsError) -> CallToolResult:
    text = explain(tool, error.__cause__ if isinstance(error, ToolError) else error)
    # Without a cause the SDK refused the call itself: the tool is unknown.
    unknown = f"{one_line(str(error), NAME_CHARACTERS)}. Ask for the list of tools."
    content = TextContent(type="text", text=text or unknown)
    return CallToolResult(content=[content], is_error=True)


def explain(tool: str, error: BaseException | None) -> str:
    match error:
        case None:
            return ""
        case InstallConflictError():
            return f"{in_words(error)}\n\n{shorten_within(error.diff, DIFF_BYTES)}"
        case StashSkillsError():
            return in_words(error)
        case ValidationError():
            return _invalid_arguments(tool, error)
        case _:
            logger.error("The tool %s failed unexpectedly.", tool, exc_info=error)
            return (
                f"{tool} failed unexpectedly ({type(error).__name__}); this is a defect of the "
                "server. Its log, on standard error and kept by the client among its MCP logs, "
                "has the details. Nothing that was stored is lost; try once more."
            )


def in_words(error: StashSkillsError) -> str:
    """The problem and the fix; of a long one the fix is kept."""
    fix = shorten(error.fix, SAID_CHARACTERS // 2)
    return f"{shorten(error.problem, SAID_CHARACTERS - len(fix))} {fix}"


def unknown_arguments(tool: str, given: set[str], known: list[str]) -> InputError | None:
    """The error for arguments that the tool does not have, which the SDK would drop in silence."""
    unknown = sorted(given - set(known))
    if not unknown:
        return None
    return InputError(
        f"{tool} has no argument {_named(unknown)}.",
        f"Its arguments are: {', '.join(known) or 'none'}.",
    )


def unknown_address(uri: str, templates: list[str]) -> str:
    """Of a resource whose address fits none of the templates."""
    uri = one_line(uri, NAME_CHARACTERS)
    return f"There is no resource {uri}. Resources have addresses like {', '.join(templates)}."


def unknown_prompt(known: Mapping[str, Prompt], name: str, given: set[str]) -> str | None:
    """Why a prompt cannot be had by this name, or with these arguments; None where it can."""
    if name not in known:
        name = one_line(name, NAME_CHARACTERS)
        return f"There is no prompt '{name}'. There are: {', '.join(known)}."
    arguments = [argument.name for argument in known[name].arguments or ()]
    unknown = sorted(given - set(arguments))
    if not unknown:
        return None
    return (
        f"The prompt {name} has no argument {_named(unknown)}. Its arguments are: "
        f"{', '.join(arguments) or 'none'}."
    )


def _named(unknown: list[str]) -> str:
    shown = ", ".join(one_line(name, _GIVEN_CHARACTERS) for name in unknown[:_NAMES_SHOWN])
    more = len(unknown) - _NAMES_SHOWN
    return f"{shown} and {more} more" if more > 0 else shown


def _invalid_arguments(tool: str, error: ValidationError) -> str:
    lines = [f"{tool} cannot be called like this:"]
    for problem in error.errors(include_url=False, include_context=False):
        place = ".".join(str(part) for part in problem["loc"]) or "arguments"
        place = one_line(place, NAME_CHARACTERS)
        given = shorten(repr(problem["input"]), _GIVEN_CHARACTERS)
        said = problem["msg"]
        lines.append(
            f"- {place}: {said}" + ("" if problem["type"] == "missing" else f", not {given}")
        )
    said = shorten("\n".join(lines), SAID_CHARACTERS)
    return f"{said}\nCorrect these and call it again."
