"""The tool that looks at this installation."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Annotated, Literal

from mcp.server.mcpserver.tools import Tool
from pydantic import Field

from stash_mcp.agents.surroundings import here, torch_index
from stash_mcp.doctor import installing
from stash_mcp.doctor.examine import Questions, examine
from stash_mcp.doctor.installation import requirements_of
from stash_mcp.doctor.report import Check, State
from stash_mcp.errors import VariableError
from stash_mcp.server.parameters import given, make_tool
from stash_mcp.server.results import Part, Result
from stash_mcp.server.shortening import fit, shorten
from stash_mcp.settings import Settings, refuse_with, stash_access

_SAID_CHARACTERS = 400
_ANSWER_BYTES = 6_000


class CheckRow(Part):
    name: str
    state: State
    said: str
    fix: str | None = None

    @classmethod
    def of(cls, check: Check) -> "CheckRow":
        fix = None if check.fix is None else shorten(check.fix, _SAID_CHARACTERS)
        said = shorten(check.said, _SAID_CHARACTERS)
        return cls(name=check.name, state=check.state, said=said, fix=fix)


class DoctorResult(Result):
    problems: int
    warnings: int
    checks: tuple[CheckRow, ...]

    @classmethod
    def of(cls, checks: tuple[Check, ...]) -> "DoctorResult":
        states = [check.state for check in checks]
        return cls(
            problems=states.count("problem"),
            warnings=states.count("warning"),
            checks=fit((CheckRow.of(check) for check in checks), _ANSWER_BYTES),
        )


class DoctorTool:
    """settings: read anew for each call, as the environment is the server's; with what is wrong
    with its variables.
    """

    def __init__(self, settings: Callable[[], tuple[Settings, Sequence[VariableError]]]) -> None:
        self._settings = settings

    def tools(self) -> list[Tool]:
        return [make_tool(self.doctor, "Check the installation", calls_models=True)]

    def doctor(
        self,
        models: Annotated[
            tuple[str, ...], Field(max_length=5, description="Call each of these once")
        ] = (),
        api_base: Annotated[str, Field(description="Where they answer")] = "",
        gpu: Annotated[bool, Field(description="Look at the device; takes seconds")] = False,
        install: Annotated[
            Literal["", "local"],
            Field(description="Install the local pipeline in the background; call again to see"),
        ] = "",
    ) -> DoctorResult:
        """Use this when something does not work, or before the first training: says what is
        missing here and how to get it. Install only if the person agrees: it downloads about 1 GB.
        """
        (settings, faults), surroundings = self._settings(), here()
        if install:
            refuse_with(faults)
            requirements = requirements_of(install)
            installing.start(
                settings, surroundings, requirements, now=_now(), cpu_torch=torch_index()
            )
        questions = Questions(models, given(api_base), gpu)
        checks = examine(settings, surroundings, stash_access, questions, _now, faults)
        return DoctorResult.of(checks)


def _now() -> datetime:
    return datetime.now(UTC)
