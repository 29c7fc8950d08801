"""The entry of our server, in the words of each agent."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

NAME = "stash-skills"

Entry = dict[str, Any]

_START_SECONDS = 60
_KEYS = (
    "STASH_API_KEY",
    "ANTHROPIC_API_KEY",
    "OPENAI_API_KEY",
    "GEMINI_API_KEY",
    "MISTRAL_API_KEY",
    "OPENROUTER_API_KEY",
    "GROQ_API_KEY",
    "DEEPSEEK_API_KEY",
    "XAI_API_KEY",
)
_PLACES = (
    "STASH_URL",
    "STASH_MCP_HOME",
    "STASH_MCP_INSTALL",
    "CLAUDE_CONFIG_DIR",
    "CODEX_HOME",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "HF_HOME",
    "HF_TOKEN",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "NO_PROXY",
    "SSL_CERT_FILE",
)


@dataclass(frozen=True)
class Server:
    """How our server is started: the command with its arguments, and variables set for it."""

    command: Sequence[str]
    environment: Mapping[str, str] = field(default_factory=dict)


Shape = Callable[[Server], Entry]


def plain(server: Server) -> Entry:
    """As most agents write it: the command, its arguments, its variables."""
    entry: Entry = {"command": server.command[0], "args": list(server.command[1:])}
    return entry | ({"env": dict(server.environment)} if server.environment else {})


def typed(server: Server) -> Entry:
    return {"type": "stdio", **plain(server)}


def codex(server: Server) -> Entry:
    # It hands on only the variables that it knows and those that are named, and waits 10 s for a
    # server unless told otherwise.
    forwarded = [name for name in (*_KEYS, *_PLACES) if name not in server.environment]
    return {**plain(server), "env_vars": forwarded, "startup_timeout_sec": _START_SECONDS}


def gemini(server: Server) -> Entry:
    # It keeps back what is named like a secret, unless the entry names it.
    keys = {name: f"${{{name}}}" for name in _KEYS}
    return {**plain(server), "env": {**server.environment, **keys}}


def opencode(server: Server) -> Entry:
    return {**opencode_2(server), "enabled": True}


def opencode_2(server: Server) -> Entry:
    """Where the file has the form of OpenCode 2; version 2 reads the other one as well."""
    entry: Entry = {"type": "local", "command": list(server.command)}
    return entry | ({"environment": dict(server.environment)} if server.environment else {})


_OTHER_TRANSPORTS = {"url", "httpUrl", "serverUrl"}


def merged(present: object, wanted: Entry) -> Entry:
    """The wanted entry with what a person added to the one that is there: other keys, other
    variables, other names. An entry that starts no command is replaced whole.
    """
    if not isinstance(present, dict) or _OTHER_TRANSPORTS & present.keys():
        return wanted
    entry = {**present, **wanted}
    for key in ("env", "environment"):
        if isinstance(present.get(key), dict) and isinstance(wanted.get(key, {}), dict):
            entry[key] = {**present[key], **wanted.get(key, {})}
    forwarded = present.get("env_vars")
    if isinstance(forwarded, list) and "env_vars" in wanted:
        entry["env_vars"] = forwarded + [row for row in wanted["env_vars"] if row not in forwarded]
    return entry
