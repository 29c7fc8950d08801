"""What Stash lists, also where it promises more than it has."""

import json
from collections.abc import Iterator

import pytest
from stand_in_stash import Odd, StandIn
from support.stash_calls import client_of, conversations

from stash_mcp.backends.hybrid.remote import list_remote
from stash_mcp.stash import StashClient


@pytest.fixture
def client(stash: StandIn) -> Iterator[StashClient]:
    with client_of(stash, stash.key) as opened:
        yield opened


def page(ids: list[str], total: int) -> Odd:
    body = {"traces": [{"id": trace_id} for trace_id in ids], "total": total}
    return Odd(body=json.dumps(body).encode())


def test_every_conversation_is_listed_over_many_pages(stash: StandIn, client: StashClient) -> None:
    client.import_traces(conversations(1_200))
    assert len(list_remote(client)) == 1_200


@pytest.mark.parametrize("ids", [[], ["t-1"]])
def test_a_list_that_promises_more_for_ever_comes_to_an_end(
    stash: StandIn, client: StashClient, ids: list[str]
) -> None:
    stash.always = page(ids, 10**15)
    assert list(list_remote(client)) == ids
    assert len(stash.asked) < 10
