"""`pull`, `push` and `rescore` as a person types them, against a stand-in of Stash."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from stand_in_stash import StandIn, stand_in
from stand_in_stash.world import GOOD, KEYS, StoredAnnotation, StoredTrace
from support.both_sides import BothSides, jsonl, talk
from support.staging import Stage

from stash_mcp.models import Step

MANY = 2_500
CONTENT = "x" * 16_000
MOST_MEGABYTES = 25
"""Over what a pull of nothing takes. The conversations alone are 40 MB, once."""


@pytest.fixture
def stash(monkeypatch: pytest.MonkeyPatch) -> Iterator[StandIn]:
    with stand_in() as running:
        monkeypatch.setenv("STASH_URL", running.base_url)
        monkeypatch.setenv("STASH_API_KEY", running.key)
        yield running


@pytest.fixture
def there(tmp_path: Path, stash: StandIn) -> Iterator[BothSides]:
    both = BothSides(tmp_path / "other", stash)
    yield both
    both.close()


def test_pull_says_what_came_and_what_is_the_same(command, there: BothSides) -> None:
    [remote] = there.import_there(talk("a"))
    there.annotate_there(remote, rating=1)
    said = command("pull")
    assert said.code == 0
    traces, notes = "Conversations: 1 new, 0 changed", "Annotations: 1 new, 0 changed"
    assert said.out == f"{traces}, 0 unchanged. {notes}, 0 unchanged.\n"
    report = json.loads(command("pull", "--traces", "a*", "--json").out)
    assert (report["direction"], report["traces"]["unchanged"]) == ("pull", 1)


def test_push_sends_what_a_pattern_fits(command, stage: Stage, there: BothSides) -> None:
    stage.backend.import_traces(jsonl([talk("shop-1"), talk("private")]))
    said = command("push", "--trace", "shop-*", "--dry-run")
    assert said.out.startswith("Nothing was changed. A push would do this:\nConversations: 1 new,")
    assert there.writes() == []
    assert command("push", "--trace", "shop-*").code == 0
    assert (there.texts_there("shop-1") != [], there.texts_there("private")) == (True, [])


def test_conflicts_are_named_and_end_with_a_code_of_their_own(
    command, stage: Stage, there: BothSides
) -> None:
    there.import_there(talk("a", "Theirs", "Theirs."))
    stage.backend.import_traces(jsonl([talk("a", "Mine", "Mine.")]))
    said = command("push")
    assert said.code == 1
    assert "1 conflict, left as they are on both sides; stash-skills push --force" in said.out
    assert "- a: Stash has another conversation of this id" in said.out
    assert command("pull", "--force").code == 0


def test_without_a_key_nothing_is_asked(
    command, stash: StandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("STASH_API_KEY")
    said = command("push")
    assert (said.code, stash.asked) == (1, [])
    assert "There is no key for 127.0.0.1" in said.err


def test_rescore_of_a_run_that_is_not_there_says_so(command, stash: StandIn) -> None:
    said = command("rescore", "stash:00000000-0000-0000-0000-000000000000")
    assert said.code == 1
    assert said.err.startswith("Error: ")


# --- many, in a process whose memory is looked at ---

MEASURED = """
import sys
from stash_mcp.cli.main import main
code = main(["pull", "--json"])
[line] = [line for line in open("/proc/self/status") if line.startswith("VmHWM")]
print(int(line.split()[1]) // 1024)
sys.exit(code)
"""


def measured_pull(home: Path, stash: StandIn) -> tuple[dict[str, object], int]:
    """The report, and the megabytes that the process took at most."""
    environment = {
        **os.environ,
        "STASH_MCP_HOME": str(home),
        "STASH_URL": stash.base_url,
        "STASH_API_KEY": stash.key,
    }
    done = subprocess.run(
        [sys.executable, "-c", MEASURED], env=environment, capture_output=True, check=True
    )
    report, _, megabytes = done.stdout.decode().rstrip().rpartition("\n")
    return json.loads(report), int(megabytes)


def fill(stash: StandIn) -> None:
    """MANY conversations; every hundredth has a rating."""
    world, owner = stash.world, KEYS[GOOD].account
    steps = (Step(role="user", content=CONTENT),)
    for number in range(MANY):
        ids = world.new_id(), (world.new_id(),)
        trace = StoredTrace(
            ids[0], owner, f"t{number}", "T", "stash", {}, steps, ids[1], world.clock()
        )
        world.traces[trace.id] = trace
        if number % 100 == 0:
            said = StoredAnnotation(
                world.new_id(), owner, ids[0], ids[1][0], 1, None, None, world.clock()
            )
            world.annotations[said.id] = said


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="Linux tells it there")
def test_forty_megabytes_of_conversations_are_never_held_at_once(
    stash: StandIn, tmp_path: Path
) -> None:
    _, before = measured_pull(tmp_path / "empty", stash)
    fill(stash)
    report, most = measured_pull(tmp_path / "home", stash)
    assert (report["traces"]["new"], report["annotations"]["new"]) == (MANY, MANY // 100)
    assert most - before < MOST_MEGABYTES
