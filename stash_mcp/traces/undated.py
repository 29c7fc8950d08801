"""The time of an annotation whose line gives none: that of its first import.

So a file without times changes nothing when it is imported again, and keeps its order. Said twice
on one target, it counts twice, as with times.
"""

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta

from stash_mcp.models import Annotation
from stash_mcp.traces.annotations import said

Known = Callable[[str], Sequence[Annotation]]
"""A trace's id -> the annotations on it that are in the library, oldest first."""

_NEXT = timedelta(microseconds=1)


class FirstImport:
    """Gives each undated annotation of one file its time, in the file's order."""

    def __init__(self, known: Known, now: datetime) -> None:
        self._known = known
        self._now = now
        self._unclaimed: dict[str, list[Annotation]] = {}

    def __call__(self, annotation: Annotation) -> datetime:
        unclaimed = self._of(annotation.trace_id)
        for place, row in enumerate(unclaimed):
            if said(row) == said(annotation):
                return unclaimed.pop(place).created_at
        moment, self._now = self._now, self._now + _NEXT
        return moment

    def _of(self, trace_id: str) -> list[Annotation]:
        if trace_id not in self._unclaimed:
            self._unclaimed[trace_id] = list(self._known(trace_id))
        return self._unclaimed[trace_id]
