"""Environment and paths, resolved once. No other room reads the environment."""

from stash_mcp.settings.account import DEFAULT_STASH_URL, StashAccess, stash_access
from stash_mcp.settings.folders import (
    BackendName,
    InstallMode,
    Settings,
    default_home,
    load_settings,
    load_usable_settings,
    refuse_with,
)
from stash_mcp.settings.keys import (
    KeyNames,
    claude_command,
    command_environment,
    has_variables,
    http_token,
    installer_environment,
    key_names,
    missing_key,
    provider_keys,
    secret_values,
    worker_environment,
)
from stash_mcp.settings.proxies import Proxy, proxy_for

__all__ = [
    "DEFAULT_STASH_URL",
    "BackendName",
    "InstallMode",
    "KeyNames",
    "Proxy",
    "Settings",
    "StashAccess",
    "claude_command",
    "command_environment",
    "default_home",
    "has_variables",
    "http_token",
    "installer_environment",
    "key_names",
    "load_settings",
    "load_usable_settings",
    "missing_key",
    "provider_keys",
    "proxy_for",
    "refuse_with",
    "secret_values",
    "stash_access",
    "worker_environment",
]
