"""The one HTTP connection to Stash: what goes out, how long it may take, how much may come back.

Asynchronous inside, on an event loop in a thread of its own, because only a cancelled task keeps a
total time against a server that sends byte after byte; see decision 9. Outside, plain methods
that any thread may call. Not covered: what an answer means, and repeating a request.
"""

import atexit
import contextlib
import hashlib
import threading
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Mapping
from concurrent.futures import CancelledError
from dataclasses import dataclass, field
from functools import partial
from typing import TypeVar

import anyio
import httpx2
from anyio.from_thread import BlockingPortal, start_blocking_portal

from stash_mcp.errors import (
    StashAddressError,
    StashAnswerError,
    StashError,
    StashMisfitError,
    StashUnreachableError,
)
from stash_mcp.settings import Proxy, proxy_for
from stash_mcp.stash.address import Address, is_loopback, same_origin, shown_host
from stash_mcp.stash.failures import HTTP_EXCEPTIONS, translated
from stash_mcp.stash.http_client import Limits, new_client

_MAX_REDIRECTS = 3
_REFUSAL_BYTES = 65_536
_REPEATED_AS_SENT = {307, 308}
_MOVED = {301, 302, 303, *_REPEATED_AS_SENT}

T = TypeVar("T")


@dataclass(frozen=True)
class Call:
    """One request. `with_key` is false for a file on whatever host that Stash refers to."""

    method: str
    url: httpx2.URL
    body: bytes | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    with_key: bool = True


@dataclass(frozen=True)
class Answer:
    status: int
    headers: httpx2.Headers
    body: bytes

    def header(self, name: str) -> str:
        """ "" where it is missing."""
        return str(self.headers.get(name, ""))


@dataclass(frozen=True)
class Stream:
    """An answer whose body is read piece by piece, within the block that opened it."""

    status: int
    headers: httpx2.Headers
    chunks: Iterator[bytes]
    """Empty for a status of 400 or more."""
    refusal: bytes
    """The beginning of such an answer's body."""


class Connection:
    """Opened at the first request; `close` ends its thread. Requests at once share it."""

    def __init__(
        self,
        address: Address,
        api_key: str | None,
        limits: Limits,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.address = address
        self.limits = limits
        self.clock = clock
        self._api_key = api_key
        self._opening = threading.Lock()
        self._open: tuple[BlockingPortal, httpx2.AsyncClient] | None = None
        self._closing = contextlib.ExitStack()

    @property
    def secrets(self) -> tuple[str, ...]:
        """What must not be shown."""
        return (self._api_key,) if self._api_key else ()

    @property
    def key_mark(self) -> str:
        """Tells keys apart, and says nothing of them."""
        return hashlib.sha256((self._api_key or "").encode()).hexdigest()[:16]

    def host_of(self, url: httpx2.URL) -> str:
        """The host's name, with its port if that is not the usual one, as it can be shown: what a
        server refers to may hold anything.
        """
        hidden = any(secret.lower() in url.host.lower() for secret in self.secrets)
        return "another host" if hidden else shown_host(url)[:100]

    def _place_of(self, url: httpx2.URL) -> "_Place":
        return _Place(self.host_of(url), None if is_loopback(url) else (url.scheme, url.host))

    def fetch(self, call: Call, seconds: float) -> Answer:
        """The whole answer, of any status, within `seconds`; a refusal's body is cut, not refused.

        StashError if none comes, if it is too large or if it leads to another host.
        """
        portal, client = self._opened()

        async def work() -> Answer:
            with anyio.fail_after(seconds):
                response = await self._send(client, call)
                try:
                    body = await _body(response, self.limits.answer_bytes)
                finally:
                    await response.aclose()
            return Answer(response.status_code, response.headers, body)

        return _in_portal(portal, work, self._place_of(call.url))

    @contextlib.contextmanager
    def stream(self, call: Call, *, unpacked: bool = True) -> Iterator[Stream]:
        """The answer as it comes; `unpacked` undoes a Content-Encoding."""
        portal, client = self._opened()
        place = self._place_of(call.url)
        response = _in_portal(portal, lambda: self._answered(client, call), place)
        source = response.aiter_bytes() if unpacked else response.aiter_raw()
        try:
            refused = response.status_code >= 400
            chunks = iter(()) if refused else self._chunks(portal, source, place)
            refusal = b""
            if refused:
                refusal = _in_portal(portal, lambda: self._refusal(response), place)
            yield Stream(response.status_code, response.headers, chunks, refusal)
        finally:
            # What went wrong before is what matters.
            with contextlib.suppress(StashError):
                _in_portal(portal, lambda: _closed(source, response), place)

    def close(self) -> None:
        with self._opening:
            opened, self._open = self._open, None
        atexit.unregister(self.close)
        if opened is not None:
            portal, client = opened
            portal.call(client.aclose)
            portal.call(portal.stop, True)
        self._closing.close()

    def _opened(self) -> tuple[BlockingPortal, httpx2.AsyncClient]:
        with self._opening:
            if self._open is None:
                client = new_client(self.limits)
                portal = start_blocking_portal(name="stash")
                self._open = self._closing.enter_context(portal), client
                # Its thread dies before the objects do, and whoever then asks it waits for ever.
                atexit.register(self.close)
            return self._open

    async def _answered(self, client: httpx2.AsyncClient, call: Call) -> httpx2.Response:
        with anyio.fail_after(self.limits.total_seconds):
            return await self._send(client, call)

    async def _refusal(self, response: httpx2.Response) -> bytes:
        with anyio.fail_after(self.limits.read_seconds):
            return await _body(response, _REFUSAL_BYTES)

    async def _send(self, client: httpx2.AsyncClient, call: Call) -> httpx2.Response:
        """The answer's beginning, after redirects within one origin."""
        url = call.url
        for _ in range(_MAX_REDIRECTS + 1):
            request = client.build_request(
                call.method, url, content=call.body, headers=self._headers(call, url)
            )
            try:
                response = await client.send(request, stream=True)
                if response.status_code not in _MOVED:
                    return response
                await response.aclose()
                url = self._next_url(call, url, response)
            except ValueError:
                # The library looks at the target of a redirect by itself, and not in its own words.
                raise StashAnswerError(
                    f"{self.host_of(url)} sends the request on to what is no address.",
                    "Check STASH_URL.",
                ) from None
        raise StashAnswerError(f"{self.host_of(url)} only refers on and on.", "Check STASH_URL.")

    def _next_url(self, call: Call, url: httpx2.URL, response: httpx2.Response) -> httpx2.URL:
        target = url.join(response.headers.get("location", ""))
        if not call.with_key:
            return self.address.storage_url(str(target))
        if not same_origin(target, url):
            raise StashAddressError(
                f"{self.host_of(url)} sends the request on to {target.scheme}://"
                f"{self.host_of(target)}, where the key does not go. Nothing was sent there.",
                "If that is Stash's new address, set STASH_URL to it.",
            )
        if call.method != "GET" and response.status_code not in _REPEATED_AS_SENT:
            raise StashAnswerError(
                f"{self.host_of(url)} answers a {call.method} by sending it elsewhere.",
                "Check that STASH_URL is the address of the API itself.",
            )
        return target

    def _headers(self, call: Call, url: httpx2.URL) -> dict[str, str]:
        headers = dict(call.headers)
        if call.with_key and self._api_key and same_origin(url, self.address.base):
            headers["authorization"] = f"Bearer {self._api_key}"
        return headers

    def _chunks(
        self, portal: BlockingPortal, source: AsyncGenerator[bytes], place: "_Place"
    ) -> Iterator[bytes]:
        waited, received = 0.0, 0
        while True:
            earned = received / self.limits.slowest_bytes_per_second
            left = self.limits.total_seconds + earned - waited
            begun = self.clock()
            chunk = _in_portal(portal, partial(_next_chunk, source, left), place)
            # The time that the reader takes between two pieces is not the server's.
            waited += self.clock() - begun
            if not chunk:
                return
            received += len(chunk)
            yield chunk


async def _body(response: httpx2.Response, limit: int) -> bytes:
    """The whole body; a refusal's is cut at what is worth reading."""
    refused = response.status_code >= 400
    if refused:
        limit = min(limit, _REFUSAL_BYTES)
    body = bytearray()
    async for chunk in response.aiter_bytes():
        body += chunk
        if len(body) > limit and refused:
            break
        if len(body) > limit:
            raise StashMisfitError(
                f"The answer is larger than {limit:,} bytes.",
                "Nothing was taken from it. Ask for less, if the request has a limit.",
                reached=True,
            )
    return bytes(body)


async def _next_chunk(source: AsyncGenerator[bytes], seconds: float) -> bytes:
    with anyio.fail_after(max(seconds, 0)):
        return await anext(source, b"")


async def _closed(source: AsyncGenerator[bytes], response: httpx2.Response) -> None:
    await source.aclose()
    await response.aclose()


@dataclass(frozen=True)
class _Place:
    """Where a request goes. host: as it can be shown. by: what a proxy is looked up by; None where
    none is used.
    """

    host: str
    by: tuple[str, str] | None

    @property
    def proxy(self) -> Proxy | None:
        return None if self.by is None else proxy_for(*self.by)


def _in_portal(portal: BlockingPortal, work: Callable[[], Awaitable[T]], place: _Place) -> T:
    try:
        return portal.call(work)
    except HTTP_EXCEPTIONS as error:
        # Not `from error`: it holds the request, and with it the key.
        raise translated(error, place.host, place.proxy) from None
    except (CancelledError, RuntimeError):
        # So a closed portal answers, and so do requests that it ended.
        raise StashUnreachableError(
            f"The connection to {place.host} was closed from here.", "Try again."
        ) from None
