"""Which URLs are used, and which of them may see the key."""

import ipaddress
import re
from dataclasses import dataclass

import httpx2

from stash_mcp.errors import StashAddressError, StashNotFoundError, sentence
from stash_mcp.settings import StashAccess

_API = "/api/v1/rm"
_DEFAULT_PORTS = {"http": 80, "https": 443}
_HOST = re.compile(rb"[A-Za-z0-9._:-]+")
_ID = re.compile(r"[A-Za-z0-9_-]{1,128}")

Origin = tuple[str, str, int | None]


@dataclass(frozen=True)
class Address:
    """Stash's checked base URL. Only requests to its origin carry the key."""

    base: httpx2.URL
    allow_http: bool

    @property
    def server(self) -> str:
        """The base URL in the one spelling by which Stashes are told apart."""
        return str(self.base).rstrip("/")

    def url(self, path: str) -> httpx2.URL:
        """`path` below the API, from its first slash on; ids in it have passed `checked_id`."""
        return self.base.copy_with(path=self.base.path.rstrip("/") + _API + path)

    def storage_url(self, text: str) -> httpx2.URL:
        """The checked URL of a file that Stash refers to, on whatever host; signed, so secret.

        A service elsewhere must not make this machine ask its own: loopback is for a loopback base.
        """
        url = _parsed(text, "The address of the file that Stash gave")
        if is_loopback(url) and not is_loopback(self.base):
            raise StashAddressError(
                "Stash refers to a file on this machine itself.",
                "Nothing was asked there. Check that STASH_URL is the right one.",
            )
        _check_encrypted(url, self.allow_http)
        return url


def address_of(access: StashAccess) -> Address:
    """StashAddressError for what is no base URL, and for one to which a key must not go."""
    elsewhere = "" if access.url_from == "STASH_URL" else f" (from {access.url_from})"
    given = f"STASH_URL{elsewhere}"
    url = _parsed(access.base_url, given)
    if url.query or url.fragment:
        raise StashAddressError(
            f"{given} has a query or a fragment.", "Give the address alone, as https://host."
        )
    _check_encrypted(url, access.allow_http)
    return Address(url, access.allow_http)


def is_id(text: str) -> bool:
    return _ID.fullmatch(text) is not None


def checked_id(id: str, noun: str) -> str:
    """An id as it can stand in a path; StashNotFoundError for what cannot be one."""
    if not is_id(id):
        raise StashNotFoundError(
            f"'{id[:80]}' is no id of a {noun} of Stash.", f"List them to see the ids: {noun}s."
        )
    return id


def shown_host(url: httpx2.URL) -> str:
    """The host, with its port if that is not the usual one."""
    return url.netloc.decode("ascii", "replace")


def is_loopback(url: httpx2.URL) -> bool:
    if url.host == "localhost":
        return True
    try:
        return ipaddress.ip_address(url.host).is_loopback
    except ValueError:
        return False


def _parsed(text: str, what: str) -> httpx2.URL:
    try:
        url = httpx2.URL(text)
    except httpx2.InvalidURL as error:
        raise StashAddressError(
            f"{what} is not a URL: {sentence(str(error))}", "Write it as https://host."
        ) from None
    if url.scheme not in _DEFAULT_PORTS or not url.host:
        raise StashAddressError(
            f"{what} is neither an https:// nor an http:// address.", "Write it as https://host."
        )
    if not _HOST.fullmatch(url.raw_host) or not 0 < (url.port or 1) < 65536:
        raise StashAddressError(
            f"{what} names no host and port that can be.", "Write it as https://host."
        )
    if url.userinfo:
        raise StashAddressError(
            f"{what} has a user name or a password in it.",
            "Take it out; the key goes into STASH_API_KEY.",
        )
    return url


def _check_encrypted(url: httpx2.URL, allow_http: bool) -> None:
    if url.scheme == "https" or allow_http or is_loopback(url):
        return
    raise StashAddressError(
        f"The address http://{shown_host(url)} is not encrypted; keys and conversations would be "
        "readable on the way.",
        "Use https://, or set STASH_ALLOW_HTTP=1 if that network is yours.",
    )


def same_origin(one: httpx2.URL, other: httpx2.URL) -> bool:
    """Scheme, host and port, the usual ports written out or not."""
    return _origin(one) == _origin(other)


def _origin(url: httpx2.URL) -> Origin:
    return url.scheme, url.host, url.port or _DEFAULT_PORTS.get(url.scheme)
