"""What the tools for a run's reflections return."""

from pydantic import Field

from stash_mcp.backends.base import WaitingReflection
from stash_mcp.models import ReflectionKind, Run
from stash_mcp.server.results import Result
from stash_mcp.server.wording import next_for_run, submit_with


class ReflectionView(Result):
    run_id: str
    number: int | None = Field(None, description="Left out where none waits")
    kind: ReflectionKind | None = None
    prompt: str | None = Field(None, description="All that is asked, and by which rules")
    waiting: tuple[int, ...] = Field(description="Numbers of all that wait")
    next: str

    @classmethod
    def of(cls, found: WaitingReflection) -> "ReflectionView":
        reflection = found.reflection
        if reflection is None:
            return cls(
                run_id=found.run.id,
                waiting=(),
                next=f"No reflection waits now. {next_for_run(found.run)}",
            )
        return cls(
            run_id=found.run.id,
            number=reflection.number,
            kind=reflection.kind,
            prompt=reflection.prompt,
            waiting=found.waiting,
            next=submit_with(reflection),
        )


class SubmitResult(Result):
    run_id: str
    number: int
    waiting: tuple[int, ...] = Field(description="Numbers of those that wait still")
    next: str

    @classmethod
    def of(cls, run: Run, number: int) -> "SubmitResult":
        return cls(
            run_id=run.id,
            number=number,
            waiting=run.reflections_waiting,
            next=f"Accepted. {next_for_run(run)}",
        )
