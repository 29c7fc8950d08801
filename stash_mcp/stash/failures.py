"""What the HTTP library raises, in our words: one table, with what a class alone does not say.

Every class of its tree that a request can raise has a row, itself or through an ancestor; a test
walks them. `reached` is false only where the request certainly was not sent.
"""

import socket
import ssl
from collections.abc import Iterator
from dataclasses import dataclass

import httpx2

from stash_mcp.errors import (
    StashAddressError,
    StashAnswerError,
    StashError,
    StashTimeoutError,
    StashUnreachableError,
)
from stash_mcp.settings import Proxy


@dataclass(frozen=True)
class Failure:
    """`{host}` stands for the host in `problem` and `fix`, `{proxy}` for the proxy's host and port,
    `{variable}` for what names it.
    """

    kind: type[StashError]
    problem: str
    fix: str
    passing: bool = True
    reached: bool = True


_ADDRESS = "Check STASH_URL, the network and the proxy (HTTPS_PROXY), and try again."
_AGAIN = "Try again in a moment."

_TIMED_OUT = Failure(StashTimeoutError, "{host} did not answer in time.", _AGAIN)
_BROKEN_OFF = Failure(StashUnreachableError, "The connection to {host} broke off.", _AGAIN)
_NO_HTTP = Failure(
    StashAnswerError,
    "What answers at {host} broke off its answer or does not speak HTTP.",
    "Try again; if it stays, check that STASH_URL is Stash's address.",
)

FAILURES: dict[type[Exception], Failure] = {
    httpx2.ConnectTimeout: Failure(
        StashTimeoutError, "{host} took no connection in time.", _ADDRESS, reached=False
    ),
    httpx2.PoolTimeout: Failure(
        StashTimeoutError, "Too many requests to {host} are under way.", _AGAIN, reached=False
    ),
    httpx2.TimeoutException: _TIMED_OUT,
    TimeoutError: _TIMED_OUT,
    httpx2.ConnectError: Failure(
        StashUnreachableError, "{host} cannot be reached.", _ADDRESS, reached=False
    ),
    httpx2.ProxyError: Failure(
        StashUnreachableError,
        "The proxy refused the connection to {host}.",
        "Check HTTPS_PROXY, or put the host into NO_PROXY.",
        reached=False,
    ),
    httpx2.UnsupportedProtocol: Failure(
        StashAddressError,
        "The address of {host} is of no kind that can be asked.",
        "Write STASH_URL as https://host, and the proxy as http://host:port.",
        passing=False,
        reached=False,
    ),
    httpx2.LocalProtocolError: Failure(
        StashAddressError,
        "A request to {host} could not be written.",
        "Check STASH_URL and the key for characters that do not belong there.",
        passing=False,
        reached=False,
    ),
    httpx2.RemoteProtocolError: _NO_HTTP,
    httpx2.NetworkError: _BROKEN_OFF,
    httpx2.ProtocolError: _NO_HTTP,
    httpx2.TransportError: _BROKEN_OFF,
    httpx2.DecodingError: Failure(
        StashAnswerError,
        "The answer of {host} is not packed as it says.",
        "Try again; if it stays, a proxy between may change what it passes on.",
    ),
    httpx2.TooManyRedirects: Failure(
        StashAnswerError, "{host} only refers on and on.", "Check STASH_URL.", passing=False
    ),
    httpx2.RequestError: _BROKEN_OFF,
    httpx2.HTTPError: _BROKEN_OFF,
    httpx2.InvalidURL: Failure(
        StashAnswerError,
        "{host} refers to something that is no URL.",
        "Check STASH_URL.",
        passing=False,
    ),
    httpx2.StreamError: _BROKEN_OFF,
}

HTTP_EXCEPTIONS = tuple(FAILURES)

_NO_SUCH_HOST = Failure(
    StashUnreachableError,
    "There is no host {host}, or its name cannot be looked up now.",
    _ADDRESS,
    reached=False,
)
_NOT_TRUSTED = Failure(
    StashUnreachableError,
    "The certificate of {host} cannot be trusted: {reason}.",
    "If your network has a certificate authority of its own, name its file in SSL_CERT_FILE.",
    passing=False,
    reached=False,
)
_NO_TLS = Failure(
    StashUnreachableError,
    "No encrypted connection to {host} came about: {reason}.",
    "Check the port in STASH_URL, and the proxy.",
    passing=False,
    reached=False,
)
_REFUSED = Failure(
    StashUnreachableError,
    "Nothing listens at {host}.",
    "Check the host and port in STASH_URL, and that the service runs.",
    reached=False,
)

_NO_PROXY = Failure(
    StashUnreachableError,
    "The proxy at {proxy}, through which {host} is asked, cannot be reached.",
    "Check {variable} and that the proxy runs, or put the host into NO_PROXY.",
    reached=False,
)
_PROXY_REFUSED = Failure(
    StashUnreachableError,
    "The proxy at {proxy} refused the connection to {host}.",
    "Check {variable}, its user name and password, or put the host into NO_PROXY.",
    reached=False,
)

_CAUSES: tuple[tuple[type[BaseException], Failure], ...] = (
    (socket.gaierror, _NO_SUCH_HOST),
    (ssl.SSLCertVerificationError, _NOT_TRUSTED),
    (ssl.SSLError, _NO_TLS),
    (ConnectionRefusedError, _REFUSED),
)


def failure_of(error: Exception, *, by_proxy: bool = False) -> Failure:
    """The row for one of HTTP_EXCEPTIONS. by_proxy: the host is asked through one."""
    if by_proxy and (failure := _at_proxy(error)) is not None:
        return failure
    if isinstance(error, httpx2.ConnectError):
        for cause in causes(error):
            for kind, failure in _CAUSES:
                if isinstance(cause, kind):
                    return failure
    for ancestor in type(error).__mro__:
        if ancestor in FAILURES:
            return FAILURES[ancestor]
    raise TypeError(f"{type(error).__name__} is no exception of the HTTP library") from error


def _at_proxy(error: Exception) -> Failure | None:
    """What went wrong on the way to the proxy; None where the way goes on behind it."""
    if isinstance(error, httpx2.ProxyError):
        return _PROXY_REFUSED
    if not isinstance(error, (httpx2.ConnectError, httpx2.ConnectTimeout)):
        return None
    # With a proxy that speaks HTTP, a certificate is that of the host behind it.
    behind = any(isinstance(cause, ssl.SSLError) for cause in causes(error))
    return None if behind else _NO_PROXY


def translated(error: Exception, host: str, proxy: Proxy | None = None) -> StashError:
    """Our error for one of HTTP_EXCEPTIONS. The library's own words may hold a URL: not shown.

    host: as it can be shown. proxy: through which it is asked, if it is through one.
    """
    failure = failure_of(error, by_proxy=proxy is not None)
    words = {
        "host": host,
        "reason": _reason(error),
        "proxy": proxy.place if proxy else "",
        "variable": proxy.named_by if proxy else "",
    }
    return failure.kind(
        failure.problem.format(**words),
        failure.fix.format(**words),
        passing=failure.passing,
        reached=failure.reached,
    )


def causes(error: BaseException) -> Iterator[BaseException]:
    """`error` and what led to it, groups included, each once."""
    waiting, seen = [error], set()
    while waiting:
        cause = waiting.pop(0)
        if id(cause) in seen:
            continue
        seen.add(id(cause))
        yield cause
        inner = cause.exceptions if isinstance(cause, BaseExceptionGroup) else ()
        waiting += [next for next in (cause.__cause__, cause.__context__, *inner) if next]


def _reason(error: BaseException) -> str:
    for cause in causes(error):
        if isinstance(cause, ssl.SSLCertVerificationError):
            return cause.verify_message
        if isinstance(cause, ssl.SSLError):
            return (getattr(cause, "reason", None) or "it was refused").replace("_", " ").lower()
    return "it was refused"
