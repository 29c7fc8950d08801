"""Where the HTTP server listens, and where it refuses to."""

import socket
from contextlib import closing
from pathlib import Path

import pytest

from stash_mcp.errors import InputError, ListenError
from stash_mcp.server.listening import HttpOptions, listen


def test_it_takes_a_free_port_of_this_machine_alone() -> None:
    with closing(listen(HttpOptions(port=0))) as listener:
        host, port = listener.getsockname()
        assert host == "127.0.0.1"
        assert port > 0
        socket.create_connection((host, port), timeout=5).close()


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "2001:db8::1"])
@pytest.mark.parametrize(
    ("options", "fix"),
    [({}, "--allow-remote-plain-http"), ({"asks_for_token": False}, "--no-auth")],
)
def test_elsewhere_it_wants_tls_or_a_word_and_always_a_token(
    host: str, options: dict[str, bool], fix: str
) -> None:
    with pytest.raises(InputError) as refused:
        listen(HttpOptions(host=host, port=0, **options))  # type: ignore[arg-type]
    assert host in refused.value.problem
    assert fix in refused.value.fix


def test_no_word_lets_it_do_without_a_token_elsewhere() -> None:
    options = HttpOptions(host="0.0.0.0", port=0, asks_for_token=False, plain_http_anywhere=True)
    with pytest.raises(InputError, match="--no-auth"):
        listen(options)


def test_on_every_address_it_is_told_the_names_that_clients_use() -> None:
    options = HttpOptions(host="0.0.0.0", port=0, plain_http_anywhere=True)
    with pytest.raises(InputError, match="--name"):
        listen(options)
    named = HttpOptions(host="0.0.0.0", port=0, plain_http_anywhere=True, names=("Box.local",))
    with closing(listen(named)):
        assert named.url(80) == "http://box.local:80/mcp"
        assert "0.0.0.0" not in named.known_names


@pytest.mark.parametrize("name", ["", "https://box", "box:8274", "box/mcp", "*", "two words"])
def test_a_name_is_a_name_and_nothing_around_it(name: str) -> None:
    with pytest.raises(InputError, match="--name"):
        listen(HttpOptions(port=0, names=(name,)))


def test_an_ipv6_address_stands_in_brackets_in_its_url() -> None:
    assert HttpOptions(host="::1").url(8274) == "http://[::1]:8274/mcp"
    with closing(listen(HttpOptions(port=0, names=("2001:db8::1",)))):
        pass


def test_a_port_in_use_is_said_to_be() -> None:
    with closing(listen(HttpOptions(port=0))) as first:
        port = first.getsockname()[1]
        with pytest.raises(ListenError) as refused:
            listen(HttpOptions(port=port))
    assert f"port {port}" in refused.value.problem
    assert "--port" in refused.value.fix


@pytest.mark.parametrize("host", ["no-such-machine.invalid", "a..b"])
def test_a_host_that_is_none_is_refused(host: str) -> None:
    with pytest.raises(InputError, match="no address"):
        listen(HttpOptions(host=host, port=0))


def test_files_that_are_no_certificate_are_refused(tmp_path: Path) -> None:
    nonsense = tmp_path / "cert.pem"
    nonsense.write_text("nonsense", encoding="utf-8")
    for cert in (nonsense, tmp_path / "missing.pem"):
        with pytest.raises(InputError) as refused:
            listen(HttpOptions(port=0, tls_cert=cert))
        assert str(cert) in refused.value.problem
    with pytest.raises(InputError, match="--tls-cert"):
        listen(HttpOptions(port=0, tls_key=nonsense))
