"""The tools of a run whose skill the agent writes itself: what is asked, and the answer."""

from typing import Annotated

from mcp.server.mcpserver.tools import Tool
from pydantic import Field

from stash_mcp.models import Submission
from stash_mcp.server.opening import LazyBackend
from stash_mcp.server.parameters import AtLeast1, RunId, given, make_tool
from stash_mcp.server.reflection_results import ReflectionView, SubmitResult


class ReflectionTools:
    def __init__(self, backend: LazyBackend) -> None:
        self._backend = backend

    def tools(self) -> list[Tool]:
        return [
            make_tool(self.get_reflection, "Read what a run asks you", reads_only=True),
            make_tool(self.submit_reflection, "Answer what a run asks you"),
        ]

    def get_reflection(
        self,
        run_id: RunId,
        number: Annotated[
            AtLeast1 | None, Field(description="Default: the first that waits")
        ] = None,
    ) -> ReflectionView:
        """Use this when get_run says that a run waits for reflections: it was started with
        reflection_model="agent", so you write its skill.

        Returns one prompt, which needs no other knowledge of the run. Write what it asks for
        yourself, then submit_reflection. The run waits as long as it takes, in other sessions too.
        """
        return ReflectionView.of(self._backend().get_reflection(run_id, number))

    def submit_reflection(
        self,
        run_id: RunId,
        number: Annotated[AtLeast1, Field(description="As in get_reflection")],
        body: Annotated[str, Field(description="For kind body: all of it, Markdown")] = "",
        name: Annotated[str, Field(description="For kind identity")] = "",
        description: Annotated[str, Field(description="For kind identity")] = "",
    ) -> SubmitResult:
        """Use this to hand in what get_reflection asked for. The run then goes on by itself.

        What breaks a rule is refused with the reason, and the reflection waits on: correct it and
        submit again. An answer cannot be changed once it is accepted.
        """
        submission = Submission(
            run_id=run_id,
            number=number,
            body=given(body),
            name=given(name),
            description=given(description),
        )
        return SubmitResult.of(self._backend().submit_reflection(submission), number)
