"""The proxy between this machine and a host, as the HTTP library takes it from the environment."""

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

_DEFAULT_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True)
class Proxy:
    """place: `host:port`, without a user name and a password. named_by: in words."""

    place: str
    named_by: str


def proxy_for(
    scheme: str,
    host: str,
    *,
    proxies: Mapping[str, str] | None = None,
    bypassed: bool | None = None,
) -> Proxy | None:
    """None where the host is asked directly. proxies, bypassed: of the environment by default, and
    elsewhere than on Linux also of the system's settings.
    """
    found = getproxies() if proxies is None else proxies
    kind = next((kind for kind in (scheme, "all") if found.get(kind)), None)
    if kind is None or (proxy_bypass(host) if bypassed is None else bypassed):
        return None
    place = _place(found[kind])
    return None if place is None else Proxy(place, f"{kind.upper()}_PROXY")


def _place(url: str) -> str | None:
    try:
        parts = urlsplit(url if "://" in url else f"http://{url}")
        port = parts.port or _DEFAULT_PORTS.get(parts.scheme, 1080)
    except ValueError:
        return None
    return f"{parts.hostname}:{port}" if parts.hostname else None
