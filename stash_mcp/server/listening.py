"""Where the HTTP server listens: what is refused, and the socket.

Off loopback the token and the conversations would cross a network, so TLS or an explicit word is
asked for there, and a token always.
"""

import ipaddress
import re
import socket
import ssl
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stash_mcp.errors import InputError, ListenError

DEFAULT_HOST = "127.0.0.1"
DEFAULT_PORT = 8274
PATH = "/mcp"
_LOOPBACK_NAMES = ("127.0.0.1", "localhost", "[::1]")
_BACKLOG = 128
_NAME = re.compile(r"[A-Za-z0-9._-]+")


@dataclass(frozen=True)
class HttpOptions:
    """host: a name or an address of this machine. port: 0 takes a free one. names: further names
    under which clients reach the server. tls_cert, tls_key: PEM files; the first may hold both.
    """

    host: str = DEFAULT_HOST
    port: int = DEFAULT_PORT
    asks_for_token: bool = True
    tls_cert: Path | None = None
    tls_key: Path | None = None
    plain_http_anywhere: bool = False
    names: tuple[str, ...] = ()

    @property
    def known_names(self) -> tuple[str, ...]:
        """What the Host header may name, as it stands in a URL."""
        named = (*self.names, *(() if _is_wildcard(self.host) else (self.host,)))
        own = tuple(_in_url(name) for name in named)
        return tuple(dict.fromkeys((*own, *_LOOPBACK_NAMES)))

    def url(self, port: int) -> str:
        """Where clients find the server that listens at `port`."""
        return f"{'https' if self.tls_cert else 'http'}://{self.known_names[0]}:{port}{PATH}"


def listen(options: HttpOptions) -> socket.socket:
    """A socket that already takes connections.

    Raises InputError for what is not served, and ListenError where the machine does not let us.
    """
    _check_tls(options)
    for name in options.names:
        _check_name(name)
    family, address = _resolve(options)
    _check_reach(options, str(address[0]))
    return _bind(family, address, options)


def _check_tls(options: HttpOptions) -> None:
    if options.tls_cert is None:
        if options.tls_key is not None:
            raise InputError("There is a TLS key and no certificate.", "Give --tls-cert too.")
        return
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(options.tls_cert, options.tls_key)
    except OSError as error:
        files = " and ".join(str(path) for path in (options.tls_cert, options.tls_key) if path)
        raise InputError(
            f"TLS cannot be served with {files}: {error.strerror or error}.",
            "Give a certificate with --tls-cert and its key with --tls-key, both as PEM.",
        ) from error


def _check_name(name: str) -> None:
    if _NAME.fullmatch(name):
        return
    try:
        ipaddress.IPv6Address(name)
    except ValueError:
        raise InputError(
            f"'{name}' is no name of a machine.",
            "Give --name without scheme, port and path, such as box.example.org.",
        ) from None


def _resolve(options: HttpOptions) -> tuple[socket.AddressFamily, tuple[Any, ...]]:
    try:
        found = socket.getaddrinfo(options.host, options.port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise InputError(
            f"There is no address for --host '{options.host}' ({error}).",
            "Give a name or an address of this machine.",
        ) from error
    family, _, _, _, address = found[0]
    return family, address


def _check_reach(options: HttpOptions, address: str) -> None:
    if ipaddress.ip_address(address.partition("%")[0]).is_loopback:
        return
    if not options.asks_for_token:
        raise InputError(
            f"Without a token only this machine is served, and {options.host} is reachable by "
            "others.",
            "Leave out --no-auth, or --host.",
        )
    if options.tls_cert is None and not options.plain_http_anywhere:
        raise InputError(
            f"On {options.host} the token and the conversations would cross the network readable "
            "by others.",
            "Give --tls-cert and --tls-key; or listen on 127.0.0.1 and forward the port "
            "(ssh -L); or, if the network itself is safe, add --allow-remote-plain-http.",
        )
    if _is_wildcard(address) and not options.names:
        raise InputError(
            f"{options.host} is every address of this machine, and no client's request names that.",
            "Add --name with the name or address that clients use, once for each.",
        )


def _bind(
    family: socket.AddressFamily, address: tuple[Any, ...], options: HttpOptions
) -> socket.socket:
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        # Elsewhere it only lets a port be used again right after its last server; on Windows it
        # would let two servers share one.
        taken_alone = getattr(socket, "SO_EXCLUSIVEADDRUSE", socket.SO_REUSEADDR)
        listener.setsockopt(socket.SOL_SOCKET, taken_alone, 1)
        if family == socket.AF_INET6:
            listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        listener.bind(address)
        listener.listen(_BACKLOG)
    except OSError as error:
        listener.close()
        raise ListenError(
            f"Could not listen on {options.host}, port {options.port}: {error.strerror or error}.",
            "Give another port with --port, or 0 for any free one. If it is another server of "
            "this library, use that one: clients share it.",
        ) from error
    return listener


def _is_wildcard(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_unspecified
    except ValueError:
        return False


def _in_url(name: str) -> str:
    return f"[{name}]" if ":" in name else name.lower()
