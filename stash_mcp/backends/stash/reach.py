"""Whether Stash can reach a model server, by how its address is written. No name is looked up."""

import ipaddress
import socket
import unicodedata
from urllib.parse import unquote, urlsplit

_OWN_NAMES = ("localhost", "local", "internal", "intranet", "lan", "home", "corp", "home.arpa")
"""What names end with that only a network of one's own knows, the whole name or after a dot."""

Address = ipaddress.IPv4Address | ipaddress.IPv6Address


def can_reach(stash_host: str, url: str) -> bool:
    """Whether who is at `stash_host` can reach the server at `url`.

    Never this machine by a name of itself. What a private network alone knows only a Stash that is
    in such a network too, which may be the same.
    """
    try:
        host = _spelled_out(urlsplit(url).hostname or "")
    except ValueError:
        return False
    if not host or _is_loopback(host):
        return False
    return _is_public(host) or not _is_public(_spelled_out(stash_host))


def _spelled_out(host: str) -> str:
    """As whoever resolves it reads it: without escapes, wide characters and the root's dot."""
    return unicodedata.normalize("NFKC", unquote(host)).lower().strip("[]").rstrip(".")


def _is_loopback(host: str) -> bool:
    address = _address(host)
    if address is None:
        return _ends_with(host, ("localhost",))
    return address.is_loopback or address.is_unspecified


def _is_public(host: str) -> bool:
    address = _address(host)
    if address is None:
        return "." in host and not _ends_with(host, _OWN_NAMES)
    return address.is_global and not address.is_multicast


def _ends_with(host: str, names: tuple[str, ...]) -> bool:
    return any(host == name or host.endswith(f".{name}") for name in names)


def _address(host: str) -> Address | None:
    """In any spelling: 127.1, 0x7f000001 and 2130706433 are one. None for a name."""
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return _old_spelling(host)
    mapped = getattr(address, "ipv4_mapped", None)
    return mapped or address


def _old_spelling(host: str) -> Address | None:
    # Letters make a name of it, but for those of a hexadecimal number.
    if not host.isascii() or not all(_is_number(part) for part in host.split(".")):
        return None
    try:
        return ipaddress.IPv4Address(socket.inet_aton(host))
    except OSError:
        return None


def _is_number(part: str) -> bool:
    digits = part.removeprefix("0x")
    allowed = "0123456789abcdef" if digits != part else "0123456789"
    return bool(digits) and all(character in allowed for character in digits)
