"""Clients that listen are told of what they listen to, in both eras, over a real library."""

import json
import threading
import warnings
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import cast

import anyio
import pytest
from mcp import Client
from mcp.shared.exceptions import MCPDeprecationWarning, MCPError
from mcp.shared.subscriptions import ResourcesListChanged, ResourceUpdated
from mcp.types import ResourceListChangedNotification, ResourceUpdatedNotification
from support.staging import Stage, result

from stash_mcp.backends.base import Backend
from stash_mcp.errors import StashKeyError
from stash_mcp.models import Run
from stash_mcp.server.addresses import MOST_LISTENED
from stash_mcp.server.app import SkillServer, build_server
from stash_mcp.server.changes import Changed, Changes, Interest
from stash_mcp.server.resource_uris import report_uri, run_uri

pytestmark = pytest.mark.anyio

PATIENCE = 20


@pytest.fixture
def server(stage: Stage) -> SkillServer:
    return build_server(
        lambda: stage.backend,
        stage.settings.project_dir,
        clock=stage.clock,
        poll_seconds=0.01,
        listen_seconds=0.01,
    )


def succeed(stage: Stage, run: Run) -> None:
    stage.store.succeed(run.id, json.dumps(result((("Be polite.", 0.4),))))


def is_watching() -> bool:
    return any(thread.name == "listening" for thread in threading.enumerate())


async def until(holds: Callable[[], bool]) -> None:
    with anyio.fail_after(PATIENCE):
        while not holds():
            await anyio.sleep(0.005)


# --- the present protocol ---


async def test_a_stream_tells_of_the_runs_that_it_names_and_of_their_end(
    server: SkillServer, stage: Stage
) -> None:
    run = stage.running(("Be polite.", 0.4))
    async with Client(server) as client:
        listening = client.listen(
            resources_list_changed=True, resource_subscriptions=[run_uri(run.id)]
        )
        async with listening as stream:
            with anyio.fail_after(PATIENCE):
                stage.report(run.id, phase="scoring", metric_calls=3)
                assert await anext(stream) == ResourceUpdated(uri=run_uri(run.id))
                succeed(stage, run)
                told = [await anext(stream), await anext(stream)]
    assert told == [ResourceUpdated(uri=run_uri(run.id)), ResourcesListChanged()]
    await until(lambda: not is_watching())


async def test_nothing_is_looked_at_while_nobody_listens(server: SkillServer, stage: Stage) -> None:
    run = stage.running(("Be polite.", 0.4))
    await until(lambda: not is_watching())
    async with Client(server) as client:
        await client.list_resources()
        await client.read_resource(run_uri(run.id))
        assert not is_watching()


async def test_one_stream_ending_leaves_the_other_listening(
    server: SkillServer, stage: Stage
) -> None:
    run = stage.running(("Be polite.", 0.4))
    other = stage.start(run.request.reward_model_id)
    async with (
        Client(server) as client,
        client.listen(resource_subscriptions=[report_uri(other.id)]) as stream,
    ):
        async with client.listen(resource_subscriptions=[run_uri(run.id)]):
            pass
        stage.backend.cancel(other.id)
        with anyio.fail_after(PATIENCE):
            assert await anext(stream) == ResourceUpdated(uri=report_uri(other.id))


# --- older clients ---


@asynccontextmanager
async def older_client(server: SkillServer) -> AsyncIterator[tuple[Client, list[object]]]:
    """The client, and what it has been told."""
    told: list[object] = []

    async def hear(message: object) -> None:
        told.append(message)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MCPDeprecationWarning)
        async with Client(server, mode="legacy", message_handler=hear) as client:
            yield client, told


def updates(told: list[object]) -> list[str]:
    return [row.params.uri for row in told if isinstance(row, ResourceUpdatedNotification)]


def list_changes(told: list[object]) -> int:
    return sum(isinstance(row, ResourceListChangedNotification) for row in told)


async def test_an_older_client_is_told_of_what_it_subscribed_to_until_it_unsubscribes(
    server: SkillServer, stage: Stage
) -> None:
    run = stage.running(("Be polite.", 0.4))
    async with older_client(server) as (client, told):
        resources = client.server_capabilities.resources
        assert resources is not None
        assert (resources.subscribe, resources.list_changed) == (True, True)
        await client.subscribe_resource(run_uri(run.id))
        stage.report(run.id, phase="scoring", metric_calls=3)
        await until(lambda: updates(told) == [run_uri(run.id)])
        await client.subscribe_resource(report_uri(run.id))
        await client.unsubscribe_resource(run_uri(run.id))
        stage.report(run.id, phase="scoring", metric_calls=4)
        await until(lambda: len(updates(told)) > 1)
    assert updates(told) == [run_uri(run.id), report_uri(run.id)]
    # It never asked for the list.
    assert list_changes(told) == 0
    await until(lambda: not is_watching())


async def test_an_older_client_that_has_the_list_is_told_when_a_run_ends(
    server: SkillServer, stage: Stage
) -> None:
    run = stage.running(("Be polite.", 0.4))
    async with older_client(server) as (client, told):
        await client.list_resources()
        succeed(stage, run)
        await until(lambda: list_changes(told) == 1)
    assert updates(told) == []


# --- what counts as a change ---


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_a_worker_that_only_lives_is_no_change(stage: Stage) -> None:
    run = stage.running(("Be polite.", 0.4))
    changes, interest = Changes(lambda: stage.backend, Clock()), _of(run)
    changes.remember(interest)
    stage.store.beat(run.id)
    assert changes.look(interest) == Changed()
    stage.score(run.id, ("Be polite.", 0.4), ("Better.", 0.5))
    assert changes.look(interest) == Changed((run_uri(run.id),))
    assert changes.look(interest) == Changed()


def test_a_run_that_came_and_ended_between_two_listings_is_told_once(stage: Stage) -> None:
    clock, interest = Clock(), Interest(lists=True)
    stage.finished(("Be polite.", 0.4))
    changes = Changes(lambda: stage.backend, clock)
    changes.remember(interest)
    stage.finished(("Be polite.", 0.4))
    assert changes.look(interest) == Changed()
    clock.now = 31
    assert changes.look(interest) == Changed(lists=True)
    clock.now = 62
    assert changes.look(interest) == Changed()


class WithoutStash:
    """The library beside a Stash that cannot be asked, one of whose runs is known."""

    def __init__(self, stage: Stage, remote: Run) -> None:
        self._stage = stage
        self._remote = remote

    def known_runs(self) -> list[Run]:
        return [self._remote, *self._stage.backend.known_runs()]

    def get_run(self, run_id: str) -> Run:
        if run_id == self._remote.id:
            raise StashKeyError("There is no key.", "Put one into STASH_API_KEY.")
        return self._stage.backend.get_run(run_id)


def test_a_stash_that_cannot_be_asked_keeps_nothing_from_being_told(stage: Stage) -> None:
    run = stage.running(("Be polite.", 0.4))
    remote = run.model_copy(update={"id": "stash:r-1"})
    backend, clock = WithoutStash(stage, remote), Clock()
    changes = Changes(lambda: cast(Backend, backend), clock)
    interest = Interest(frozenset({run_uri(run.id), run_uri(remote.id)}), lists=True)
    changes.remember(interest)
    assert changes.look(interest) == Changed()
    succeed(stage, run)
    assert changes.look(interest) == Changed((run_uri(run.id),), lists=True)


def test_the_first_run_of_a_library_that_was_not_there_is_seen(stage: Stage) -> None:
    interest = Interest(frozenset({run_uri("run-2")}), lists=True)
    clock = Clock()
    there = [False]
    changes = Changes(lambda: stage.backend if there[0] else None, clock)
    changes.remember(interest)
    assert changes.look(interest) == Changed()
    assert stage.finished(("Be polite.", 0.4)).id == "run-2"
    there[0], clock.now = True, 31
    assert changes.look(interest) == Changed((run_uri("run-2"),), lists=True)


def _of(run: Run) -> Interest:
    return Interest(frozenset({run_uri(run.id)}))


async def test_what_cannot_change_or_is_not_there_is_not_subscribed_to(
    server: SkillServer, stage: Stage
) -> None:
    run = stage.running(("Be polite.", 0.4))
    async with older_client(server) as (client, _):
        for uri in ("nonsense", "", run_uri("none"), run_uri("x" * 100_000)):
            with pytest.raises(MCPError) as refused:
                await client.subscribe_resource(uri)
            assert len(str(refused.value)) < 2200
        await client.subscribe_resource(report_uri(run.id))
        await client.subscribe_resource(run_uri(stage.train().id))


async def test_a_client_listens_to_a_hundred_addresses_and_no_more(
    server: SkillServer, stage: Stage
) -> None:
    addresses = [f"stash://traces/{number}" for number in range(MOST_LISTENED + 1)]
    async with older_client(server) as (client, _):
        for uri in addresses[:-1]:
            await client.subscribe_resource(uri)
        await client.subscribe_resource(addresses[0])
        with pytest.raises(MCPError, match="No more than 100"):
            await client.subscribe_resource(addresses[-1])
        await client.unsubscribe_resource(addresses[0])
        await client.subscribe_resource(addresses[-1])
    async with Client(server) as client:
        with pytest.raises(MCPError, match="No more than 100"):
            async with client.listen(resource_subscriptions=addresses):
                pass
