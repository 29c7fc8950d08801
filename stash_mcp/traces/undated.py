"""The time of an annotation whose line gives none: that of its first import.

So a file without times changes nothing when it is imported again, and keeps its order. Said twice
on one target, it counts twice, as with times.
"""

import json
from collections import defaultdict, deque
from collections.abc import Callable, Collection, Sequence
from datetime import datetime, timedelta

from stash_mcp.models import Annotation
from stash_mcp.traces.annotations import said

Known = Callable[[str], Sequence[Annotation]]
"""A trace's id -> the annotations on it that are in the library, oldest first."""

_NEXT = timedelta(microseconds=1)


class FirstImport:
    """Gives each undated annotation of one file its time, in the file's order.

    What the library holds of the file's dated ones is theirs, and so no undated one's.
    """

    def __init__(self, known: Known, now: datetime) -> None:
        self._known = known
        self._now = now
        self._looked_up: set[str] = set()
        self._unclaimed: defaultdict[str, deque[datetime]] = defaultdict(deque)

    def __call__(self, annotation: Annotation, dated: Collection[str]) -> datetime:
        self._look_up(annotation.trace_id, dated)
        times = self._unclaimed[_words(annotation)]
        if times:
            return times.popleft()
        moment, self._now = self._now, self._now + _NEXT
        return moment

    def _look_up(self, trace_id: str, dated: Collection[str]) -> None:
        if trace_id in self._looked_up:
            return
        self._looked_up.add(trace_id)
        for row in self._known(trace_id):
            if row.id not in dated:
                self._unclaimed[_words(row)].append(row.created_at)


def _words(annotation: Annotation) -> str:
    return json.dumps(said(annotation))
