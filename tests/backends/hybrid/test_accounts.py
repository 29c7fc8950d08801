"""Another key, another account, another server: pairs are never taken for those of this one."""

from collections.abc import Iterator

import pytest
from stand_in_stash import StandIn, stand_in
from stand_in_stash.world import KEYS, OTHER, Key
from support.both_sides import QUICK, BothSides, talk
from support.stash_calls import client_of

from stash_mcp.backends.base import AnnotationDraft
from stash_mcp.backends.hybrid import SyncReport
from stash_mcp.server.sync_wording import sync_in_words

ANOTHER_KEY = "mc_again_0123456789abcdef"


@pytest.fixture(params=["another account", "another server"])
def away(request: pytest.FixtureRequest, stash: StandIn) -> Iterator[tuple[StandIn, str]]:
    if request.param == "another account":
        yield stash, OTHER
        return
    with stand_in() as elsewhere:
        yield elsewhere, elsewhere.key


def push(sides: BothSides, at: tuple[StandIn, str], *patterns: str, **options: bool) -> SyncReport:
    with client_of(*at, QUICK) as client:
        return sides.hybrid(client).push(patterns or None, **options)


def pull(sides: BothSides, at: tuple[StandIn, str]) -> SyncReport:
    with client_of(*at, QUICK) as client:
        return sides.hybrid(client).pull()


def furnish(sides: BothSides) -> None:
    sides.import_here(talk("a"), talk("b"))
    sides.backend.annotate(AnnotationDraft(trace_id="a", comment="Mine."))
    sides.push()


def writes(at: tuple[StandIn, str]) -> int:
    return sum(asked.method != "GET" for asked in at[0].asked)


def test_what_belongs_elsewhere_is_neither_gone_nor_sent_unasked(
    sides: BothSides, away: tuple[StandIn, str]
) -> None:
    furnish(sides)
    before = writes(away)
    for report in (push(sides, away, dry_run=True), push(sides, away), push(sides, away)):
        assert (report.gone, report.annotations_gone, report.elsewhere) == (0, 0, 2)
        assert "another account or server of Stash" in str(sync_in_words(report))
    assert writes(away) == before
    assert sides.push().traces.unchanged == 2
    sides.import_here(talk("new"))
    report = push(sides, away)
    assert (report.traces.new, report.elsewhere) == (1, 2)


def test_what_is_named_goes_there_and_both_places_are_kept_apart(
    sides: BothSides, away: tuple[StandIn, str]
) -> None:
    furnish(sides)
    report = push(sides, away, "*")
    assert (report.traces.new, report.annotations.new) == (2, 1)
    for again in (push(sides, away), sides.push()):
        assert (again.traces.unchanged, again.annotations.unchanged) == (2, 1)
        assert (again.gone, again.elsewhere) == (0, 0)


def test_a_pull_from_elsewhere_loses_nothing_and_sends_no_comment_there(
    sides: BothSides, away: tuple[StandIn, str]
) -> None:
    furnish(sides)
    with client_of(*away, QUICK) as client:
        client.import_traces('{"id": "a", "steps": [{"role": "user", "content": "Else."}]}')
        client.import_traces('{"id": "c", "steps": [{"role": "user", "content": "More."}]}')
    report = pull(sides, away)
    assert (report.traces.new, len(report.conflicts), report.gone) == (1, 1, 0)
    assert len(sides.notes_here("a")) == 1
    assert sides.push().traces.unchanged == 2


def test_comments_of_one_account_go_to_no_other_on_a_conversation_that_both_have(
    sides: BothSides, away: tuple[StandIn, str]
) -> None:
    furnish(sides)
    push(sides, away, "b")
    with client_of(*away, QUICK) as client:
        exported = sides.backend.export_traces()
        client.import_traces("".join(f"{line}\n" for line in exported), "stash")
    report = push(sides, away)
    assert (report.traces.unchanged, report.annotations.new, report.elsewhere) == (2, 0, 1)
    assert push(sides, away, "a").annotations.new == 1


def test_a_new_key_of_the_same_account_goes_on_with_its_pairs(
    sides: BothSides, stash: StandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    furnish(sides)
    monkeypatch.setitem(KEYS, ANOTHER_KEY, Key(KEYS[stash.key].account))
    first, _ = stash.world.traces
    with client_of(stash, ANOTHER_KEY, QUICK) as client:
        client.delete_trace(first)
    report = push(sides, (stash, ANOTHER_KEY))
    assert (report.traces.unchanged, report.gone, report.elsewhere) == (1, 1, 0)


def test_a_key_is_remembered_though_everything_was_deleted(sides: BothSides) -> None:
    furnish(sides)
    with sides.client() as client:
        for remote_id in list(sides.stash.world.traces):
            client.delete_trace(remote_id)
    report = sides.push()
    assert (report.gone, report.elsewhere) == (2, 0)


def test_no_key_is_stored(sides: BothSides) -> None:
    furnish(sides)
    for path in sides.stage.settings.home.glob("library.db*"):
        assert sides.stash.key.encode() not in path.read_bytes()
