"""Pulls and pushes of one library at the same moment: one does it, the others say why not."""

import threading
from collections import Counter
from collections.abc import Sequence

import pytest
from support.both_sides import QUICK, BothSides, talk
from support.stash_calls import client_of

from stash_mcp.backends.base import AnnotationDraft
from stash_mcp.backends.hybrid import SyncReport
from stash_mcp.errors import LibraryBusyError

COUNT = 6


def at_once(sides: BothSides, kinds: Sequence[str]) -> list[SyncReport | LibraryBusyError]:
    """What came of each, all begun together."""
    start = threading.Barrier(len(kinds))
    outcomes: list[SyncReport | LibraryBusyError] = []

    def work(kind: str) -> None:
        with client_of(sides.stash, sides.stash.key, QUICK) as client:
            hybrid = sides.hybrid(client)
            start.wait(10)
            try:
                outcomes.append(hybrid.push() if kind == "push" else hybrid.pull())
            except LibraryBusyError as error:
                outcomes.append(error)

    threads = [threading.Thread(target=work, args=[kind]) for kind in kinds]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    return outcomes


@pytest.mark.parametrize("kinds", [("push", "push"), ("push", "pull", "push", "pull")])
def test_nothing_is_there_twice(sides: BothSides, kinds: Sequence[str]) -> None:
    sides.import_here(*(talk(f"here-{number}") for number in range(COUNT)))
    for number in range(COUNT):
        draft = AnnotationDraft(trace_id=f"here-{number}", step_index=1, comment="Mine.")
        sides.backend.annotate(draft)
    for remote_id in sides.import_there(*(talk(f"there-{number}") for number in range(COUNT))):
        sides.annotate_there(remote_id, comment="Theirs.")
    outcomes = at_once(sides, kinds)
    assert len(outcomes) == len(kinds)
    assert any(isinstance(outcome, SyncReport) for outcome in outcomes)
    sides.push()
    sides.pull()
    said = Counter(comment for _, _, comment in sides.said_there())
    assert said == {"Mine.": COUNT, "Theirs.": COUNT}
    ids = Counter(trace.external_id for trace in sides.stash.world.traces.values())
    assert set(ids.values()) == {1}
    for trace_id in ids:
        assert len(sides.notes_here(str(trace_id))) == 1
