"""What is said of a skill that was installed by itself, to whom, and how often."""

import dataclasses
import json
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path

import pytest
from support.staging import Stage, result

from stash_mcp.backends.base import RunOrder
from stash_mcp.backends.installations import InstallOrder
from stash_mcp.backends.local import LocalBackend
from stash_mcp.errors import InputError
from stash_mcp.skills.sight import session_from_now

BETTER = (("Answer.", 0.4), ("Ask for the order number.", 0.6))


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path)


def in_session(stage: Stage) -> LocalBackend:
    """The backend of a server that is started now."""
    return LocalBackend(
        stage.settings,
        clock=stage.clock,
        new_id=lambda: "x",
        start_worker=lambda _settings: False,
        session=session_from_now(stage.settings, stage.now),
    )


def skills_dir(stage: Stage) -> Path:
    return stage.settings.project_dir / ".claude" / "skills"


def test_a_session_is_told_the_path_the_gain_and_that_it_sees_it_now(stage: Stage) -> None:
    skills_dir(stage).mkdir(parents=True)
    server = in_session(stage)
    stage.finished(*BETTER)
    stage.backend.reconcile()
    [notice] = server.take_notices()
    assert str(skills_dir(stage) / "polite-support" / "SKILL.md") in notice.note
    assert "Its gain over the seed is +0.170 on held-out conversations." in notice.note
    assert "picks it up within a few seconds" in notice.note
    assert server.take_notices() == []


def test_a_session_that_began_without_the_folder_has_to_be_restarted(stage: Stage) -> None:
    server = in_session(stage)
    for scored in (BETTER, (("Answer.", 0.4), ("Ask twice.", 0.7))):
        stage.finished(*scored)
        # The second one finds the folder; the session still does not watch it.
        stage.backend.reconcile()
        [notice] = server.take_notices()
        assert "/reload-skills" in notice.note
        assert "within a few seconds" not in notice.note


def test_a_session_that_began_after_it_has_it(stage: Stage) -> None:
    stage.finished(*BETTER)
    stage.backend.reconcile()
    stage.now += timedelta(minutes=1)
    [notice] = in_session(stage).take_notices()
    assert "nothing has to be restarted" in notice.note


def test_a_gain_that_was_not_measured_on_held_out_ones_says_so(stage: Stage) -> None:
    stage.conversations()
    run = stage.start(stage.trained().id)
    stage.begin()
    stage.score(run.id, *BETTER)
    outcome = {**result(BETTER), "heldout": None}
    stage.store.succeed(run.id, json.dumps(outcome))
    [notice] = stage.backend.reconcile()
    assert "+0.200 on the conversations optimised on (in-sample)" in notice.note


def test_an_agent_and_a_person_at_a_command_are_told_once_each(stage: Stage) -> None:
    stage.finished(*BETTER)
    stage.backend.reconcile()
    assert len(stage.backend.take_notices("command")) == 1
    assert len(stage.backend.take_notices("agent")) == 1
    assert stage.backend.take_notices("command") == []
    assert stage.backend.take_notices("agent") == []


def test_a_command_does_not_bring_up_what_is_long_past(stage: Stage) -> None:
    stage.finished(*BETTER)
    stage.backend.reconcile()
    stage.now += timedelta(days=2)
    assert stage.backend.take_notices("command") == []
    assert len(stage.backend.take_notices("agent")) == 1


def test_install_skill_goes_by_the_session_as_well(stage: Stage) -> None:
    server = in_session(stage)
    run = stage.finished(*BETTER)
    stage.backend.reconcile()
    [again] = server.install_skill(InstallOrder(run_id=run.id, candidate=0))
    assert "/reload-skills" in again.visibility


def test_a_project_that_is_gone_is_not_made_again(stage: Stage) -> None:
    stage.finished(*BETTER)
    stage.settings.project_dir.rmdir()
    [notice] = stage.backend.reconcile()
    assert notice.state == "staged"
    assert f"There is no project folder {stage.settings.project_dir}" in notice.note
    assert not stage.settings.project_dir.exists()


def test_a_run_for_a_folder_of_a_project_that_is_not_there_is_refused(stage: Stage) -> None:
    stage.conversations()
    model = stage.trained()
    gone = stage.open(dataclasses.replace(stage.settings, project_dir=stage.settings.home / "no"))
    order = RunOrder(
        reward_model_id=model.id,
        task_model="openai/small",
        reflection_model="builtin/comments",
        install_agents=("./skills",),
    )
    with pytest.raises(InputError, match="there is no project folder"):
        gone.start_run(order)


# --- several servers over one library ---


def test_two_servers_tell_their_agents_both_and_each_once(stage: Stage) -> None:
    servers = [in_session(stage), in_session(stage)]
    run = stage.finished(*BETTER)
    stage.backend.reconcile()
    for server in servers:
        assert [row.run_id for row in server.take_notices()] == [run.id]
    assert [server.take_notices() for server in servers] == [[], []]


def test_a_server_that_starts_later_tells_only_what_nobody_was_told(stage: Stage) -> None:
    first = in_session(stage)
    stage.finished(*BETTER)
    stage.backend.reconcile()
    assert len(first.take_notices()) == 1
    stage.now += timedelta(minutes=1)
    later = in_session(stage)
    assert later.take_notices() == []
    second = stage.finished(("Answer.", 0.4), ("Ask twice.", 0.7))
    stage.backend.reconcile()
    for server in (later, first):
        assert [row.run_id for row in server.take_notices()] == [second.id]


def test_what_nobody_was_told_is_told_by_one_of_the_servers_that_start_later(stage: Stage) -> None:
    stage.finished(*BETTER)
    stage.backend.reconcile()
    stage.now += timedelta(minutes=1)
    assert [len(in_session(stage).take_notices()) for _ in range(2)] == [1, 0]


def test_answers_that_are_given_at_once_tell_it_once(stage: Stage) -> None:
    server = in_session(stage)
    stage.finished(*BETTER)
    stage.backend.reconcile()
    with ThreadPoolExecutor(4) as pool:
        told = list(pool.map(lambda _: server.take_notices(), range(8)))
    assert sum(map(len, told)) == 1
