"""Whether whoever is told of an installation sees the skill."""

import dataclasses
from datetime import timedelta

import pytest

from stash_mcp.settings import Settings
from stash_mcp.skills.sight import session_from_now, sight_in
from stash_mcp.skills.targets import FOLDER, Target, resolve

from .conftest import NOW, Bench

LATER = NOW + timedelta(minutes=5)


@pytest.fixture
def settings(bench: Bench) -> Settings:
    return dataclasses.replace(bench.settings, user_home=bench.settings.home.parent / "user")


def test_a_folder_that_was_there_when_the_session_began_is_watched_by_it(
    bench: Bench, settings: Settings
) -> None:
    bench.skills_dir.mkdir(parents=True)
    session = session_from_now(settings, NOW)
    said = sight_in(session, resolve(settings, "project"), "x", LATER)
    assert "picks it up within a few seconds" in said


def test_a_folder_that_came_later_is_not_however_often_something_is_installed_there(
    bench: Bench, settings: Settings
) -> None:
    session = session_from_now(settings, NOW)
    bench.skills_dir.mkdir(parents=True)
    said = sight_in(session, resolve(settings, "project"), "x", LATER)
    assert "until it is restarted or told `/reload-skills`" in said


def test_what_was_there_before_the_session_needs_nothing(settings: Settings) -> None:
    session = session_from_now(settings, LATER)
    said = sight_in(session, resolve(settings, "project"), "x", NOW)
    assert "nothing has to be restarted" in said


def test_outside_of_a_session_the_condition_is_said(settings: Settings) -> None:
    said = sight_in(None, resolve(settings, "project"), "x", NOW)
    assert "if the skills folder was there when that session began" in said
    assert "restart it" in sight_in(None, resolve(settings, "project", "goose"), "x", NOW)


def test_of_a_folder_that_was_named_nothing_is_known(bench: Bench) -> None:
    target = Target(FOLDER, FOLDER, bench.skills_dir)
    assert "is not known here" in sight_in(None, target, "x", NOW)


def test_a_personal_skill_of_the_same_name_hides_it_for_whoever_is_told(
    bench: Bench, settings: Settings
) -> None:
    done = bench.install(scope="user")
    said = sight_in(None, resolve(settings, "project"), "refund-answers", NOW)
    assert f"But {done.installation.path}, a personal skill of the same name, hides it." in said
