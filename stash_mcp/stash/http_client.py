"""The HTTP client as we set it up: limits, trust and proxies, and what is wrong with those."""

import logging
import ssl
from dataclasses import dataclass
from http.cookiejar import CookieJar, DefaultCookiePolicy

import httpx2

from stash_mcp import __version__
from stash_mcp.errors import StashAddressError

USER_AGENT = f"stash-skills/{__version__}"
# In the clear or not, what is for this machine does not go through a proxy.
_NEVER_BY_PROXY = ("all://localhost", "all://127.0.0.0/8", "all://[::1]")


@dataclass(frozen=True)
class Limits:
    """Seconds, bytes and counts; each for one call, its repetitions and pauses included.

    slowest_bytes_per_second: a stream gets `total_seconds`, and the time its bytes take so slowly.
    attempts: of one request in all. longest_pause_seconds: a server may ask for so much before the
    next attempt; if it asks for more, it is told to the person.
    """

    connect_seconds: float = 10.0
    read_seconds: float = 30.0
    total_seconds: float = 120.0
    answer_bytes: int = 64 * 1024**2
    slowest_bytes_per_second: float = 20_000.0
    attempts: int = 4
    first_pause_seconds: float = 0.5
    longest_pause_seconds: float = 30.0


DEFAULT_LIMITS = Limits()


def new_client(limits: Limits) -> httpx2.AsyncClient:
    """Proxies and authorities of the environment are read now; StashAddressError for bad ones."""
    # At its level INFO the library writes every URL, and signed ones are secret.
    logging.getLogger("httpx2").setLevel(logging.WARNING)
    try:
        return httpx2.AsyncClient(
            headers={"user-agent": USER_AGENT, "accept-encoding": "gzip"},
            timeout=httpx2.Timeout(limits.read_seconds, connect=limits.connect_seconds),
            follow_redirects=False,
            # None are kept: Stash needs none, and one that cannot be sent would stop every request.
            cookies=CookieJar(DefaultCookiePolicy(allowed_domains=[])),
            mounts=dict.fromkeys(_NEVER_BY_PROXY),
        )
    except ImportError:
        raise StashAddressError(
            "The proxy of the environment speaks SOCKS, and the package for that is missing.",
            "Run: pip install socksio; or set HTTPS_PROXY to a proxy that speaks HTTP.",
        ) from None
    except (ValueError, httpx2.InvalidURL):
        raise StashAddressError(
            "The proxy of the environment has no usable address.",
            "Write HTTPS_PROXY as http://host:port.",
        ) from None
    except (OSError, ssl.SSLError) as error:
        raise StashAddressError(
            "The certificates that SSL_CERT_FILE or SSL_CERT_DIR names cannot be read: "
            f"{error.strerror or 'they are no certificates'}.",
            "Name a file in PEM format, or unset the variable.",
        ) from None
