"""Where Stash is, and the key for it."""

import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from stash_mcp.errors import InputError
from stash_mcp.settings.unfilled import UNFILLED

DEFAULT_STASH_URL = "https://api.joinstash.ai"
_USABLE_KEY = re.compile(r"^[\x21-\x7e]+$")
_CONFIG_BYTES = 65_536


@dataclass(frozen=True)
class StashAccess:
    """Where Stash is, as it was given and unchecked, and the key for it.

    api_key: None where there is none that may go to this URL; `key_from` then says why.
    allow_http: whether the key may travel in the clear to another machine.
    """

    base_url: str
    api_key: str | None = field(repr=False)
    url_from: str
    key_from: str
    allow_http: bool = False


def stash_access(
    environ: Mapping[str, str] | None = None, user_home: Path | None = None
) -> StashAccess:
    """Stash's URL and key: the environment, else what the plugin was configured with, else
    `~/.stash/config.json`, which is only read.

    The file's key goes to the file's URL alone. InputError for a key that no header can carry, and
    for a file that is needed and cannot be read.
    """
    environ = os.environ if environ is None else environ
    url, url_from = _first_set(environ, "STASH_URL", "CLAUDE_PLUGIN_OPTION_STASH_URL")
    key, key_from = _first_set(environ, "STASH_API_KEY", "CLAUDE_PLUGIN_OPTION_STASH_API_KEY")
    if not url or not key:
        path = (user_home or Path.home()) / ".stash" / "config.json"
        file_url, file_key = _stash_config(path)
        file_url = file_url or DEFAULT_STASH_URL
        if not key:
            key, key_from = _files_key(file_key, file_url, url, path)
        if not url:
            url, url_from = file_url, str(path) if path.exists() else "the default"
    allow_http = _first_set(environ, "STASH_ALLOW_HTTP")[0].lower() in ("1", "true", "yes")
    return StashAccess(url, _usable(key, key_from), url_from, key_from, allow_http)


def _first_set(environ: Mapping[str, str], *names: str) -> tuple[str, str]:
    for name in names:
        value = environ.get(name, "").strip()
        if value and not UNFILLED.match(value):
            return value, name
    return "", ""


def _files_key(file_key: str, file_url: str, url: str, path: Path) -> tuple[str, str]:
    if not file_key:
        return "", "no key is set"
    if url and _origin(url) != _origin(file_url):
        return "", f"the key in {path} belongs to another address than STASH_URL"
    return file_key, str(path)


def _origin(url: str) -> tuple[str, str]:
    try:
        parts = urlsplit(url)
    except ValueError:
        return "", url
    return parts.scheme.lower(), parts.netloc.lower()


def _usable(key: str, key_from: str) -> str | None:
    if key and not _USABLE_KEY.match(key):
        raise InputError(
            f"The Stash key from {key_from} has blanks or characters that no key has.",
            "Copy it again, without quotes and line ends.",
        )
    return key or None


def _stash_config(path: Path) -> tuple[str, str]:
    """URL and key of the file that the `stashai` command keeps; "" for what is not there."""
    try:
        with path.open("rb") as file:
            values = json.loads(file.read(_CONFIG_BYTES))
    except (FileNotFoundError, NotADirectoryError):
        return "", ""
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(
            f"{path} cannot be read as JSON ({type(error).__name__}).",
            "Correct it, or set STASH_URL and STASH_API_KEY instead.",
        ) from None
    texts = values if isinstance(values, dict) else {}
    url, key = (texts.get(name) for name in ("base_url", "api_key"))
    return _text(url), _text(key)


def _text(value: object) -> str:
    return value.strip() if isinstance(value, str) else ""
