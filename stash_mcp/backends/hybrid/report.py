"""What a pull or a push did, or would do."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

from stash_mcp.models import Frozen

Direction = Literal["pull", "push"]
Say = Callable[[str], None]
"""Told, in a sentence, what begins or how far it is."""


class Counts(Frozen):
    """new: the other side had none. changed: brought up to date there."""

    new: int = 0
    changed: int = 0
    unchanged: int = 0


class Held(Frozen):
    """Something that was left as it is on both sides, and why."""

    trace_id: str
    why: str


class SyncReport(Frozen):
    """conflicts: changed on both sides; a forced sync decides them. refused: what the side that
    takes does not accept. gone, annotations_gone: conversations, and annotations on others, that
    were at Stash once and are not now; they stay here, and a forced push sends them. elsewhere:
    conversations and annotations that belong to another account or server of Stash; a push sends
    them only where it is given their ids."""

    direction: Direction
    dry_run: bool
    traces: Counts
    annotations: Counts
    conflicts: tuple[Held, ...]
    refused: tuple[Held, ...]
    gone: int = 0
    annotations_gone: int = 0
    elsewhere: int = 0
    reward_model_id: str | None = None
    """Of the model that was brought here, in the library."""


@dataclass
class Tally:
    """A report as it grows."""

    direction: Direction
    dry_run: bool
    traces: dict[str, int] = field(default_factory=dict)
    annotations: dict[str, int] = field(default_factory=dict)
    conflicts: list[Held] = field(default_factory=list)
    refused: list[Held] = field(default_factory=list)
    gone: int = 0
    annotations_gone: int = 0
    elsewhere: int = 0

    def trace(self, what: Literal["new", "changed", "unchanged"], count: int = 1) -> None:
        self.traces[what] = self.traces.get(what, 0) + count

    def annotation(self, what: Literal["new", "changed", "unchanged"], count: int = 1) -> None:
        self.annotations[what] = self.annotations.get(what, 0) + count

    def conflict(self, trace_id: str, why: str) -> None:
        self.conflicts.append(Held(trace_id=trace_id, why=why))

    def refuse(self, trace_id: str, why: str) -> None:
        """Each once, however often it is met."""
        held = Held(trace_id=trace_id, why=why)
        if held not in self.refused:
            self.refused.append(held)

    def report(self, reward_model_id: str | None = None) -> SyncReport:
        return SyncReport(
            direction=self.direction,
            dry_run=self.dry_run,
            traces=Counts(**self.traces),
            annotations=Counts(**self.annotations),
            conflicts=tuple(self.conflicts),
            refused=tuple(self.refused),
            gone=self.gone,
            annotations_gone=self.annotations_gone,
            elsewhere=self.elsewhere,
            reward_model_id=reward_model_id,
        )
