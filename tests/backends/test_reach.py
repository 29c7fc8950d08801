"""Which model servers a Stash can reach, by how they are written."""

import pytest

from stash_mcp.backends.base import RunOrder
from stash_mcp.backends.stash.orders import run_start
from stash_mcp.backends.stash.reach import can_reach
from stash_mcp.errors import UnsupportedError

HOSTED, OWN = "api.joinstash.ai", "10.0.0.5"

LOOPBACK = (
    "localhost", "localhost.", "LOCALHOST", "me.localhost", "127.0.0.1", "127.9.9.9", "127.1",
    "0x7f000001", "0x7F.1", "2130706433", "0177.0.0.1", "0", "0.0.0.0", "[::1]", "[::]",
    "[::ffff:127.0.0.1]", "[0:0:0:0:0:0:0:1]", "%31%32%37.0.0.1", "\uff11\uff12\uff17.0.0.1",
)  # fmt: skip
PRIVATE = (
    "10.0.0.5", "10.1", "0x0a000005", "172.16.0.1", "172.31.255.255", "192.168.1.20",
    "3232235796", "169.254.169.254", "100.64.0.1", "[fc00::1]", "[fd12:3456::1]", "[fe80::1]",
    "[fe80::1%25eth0]", "[::ffff:192.168.1.20]", "224.0.0.1", "gpu", "GPU", "gpu-box.local",
    "vllm.internal", "vllm.corp", "nas.lan", "box.home.arpa", "metadata.google.internal.",
)  # fmt: skip
PUBLIC = (
    "models.example.org", "models.example.org.", "localhost.example.org", "local.example.org",
    "10.example.org", "8.8.8.8", "134744072", "172.32.0.1", "192.169.1.1", "[2001:4860:4860::8888]",
    "internal.io", "0xcafe.org",
)  # fmt: skip


@pytest.mark.parametrize("host", LOOPBACK)
def test_no_stash_reaches_this_machine_by_a_name_of_itself(host: str) -> None:
    assert not can_reach(HOSTED, f"http://{host}:8000/v1")
    assert not can_reach(OWN, f"http://{host}/v1")


@pytest.mark.parametrize("host", PRIVATE)
def test_only_a_stash_in_a_private_network_reaches_what_is_in_one(host: str) -> None:
    assert not can_reach(HOSTED, f"http://{host}:8000/v1")
    assert can_reach(OWN, f"http://{host}:8000/v1")
    assert can_reach("stash.internal", f"http://{host}/v1")


@pytest.mark.parametrize("host", PUBLIC)
def test_every_stash_reaches_what_is_public(host: str) -> None:
    assert can_reach(HOSTED, f"https://{host}:8443/v1")
    assert can_reach(OWN, f"https://{host}/v1")


@pytest.mark.parametrize("url", ["", "models.example.org", "http://", "http://[::1", "http:///v1"])
def test_what_names_no_host_is_reached_by_none(url: str) -> None:
    assert not can_reach(HOSTED, url)
    assert not can_reach(OWN, url)


def test_an_order_with_a_server_out_of_reach_is_refused() -> None:
    order = RunOrder(
        reward_model_id="stash:m", task_model="openai/small", task_api_base="http://192.168.1.20/v1"
    )
    with pytest.raises(UnsupportedError, match=r"cannot reach a server at 'http://192\.168\.1\.20"):
        run_start(order, HOSTED)
    assert run_start(order, OWN).task_api_base == order.task_api_base
