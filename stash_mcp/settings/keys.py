"""Keys in the environment, and the environments that other processes get."""

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from stash_mcp.settings.unfilled import UNFILLED


def http_token(environ: Mapping[str, str] | None = None) -> str | None:
    """The bearer token of the HTTP server that the person set; None where they set none.

    Not a part of Settings, which may be shown.
    """
    environ = os.environ if environ is None else environ
    value = environ.get("STASH_MCP_TOKEN", "").strip()
    return None if not value or UNFILLED.match(value) else value


def _without_empty_keys(environ: Mapping[str, str]) -> dict[str, str]:
    """A client passes a key that is not set as "" or as `${NAME}`; libraries would send either."""
    kept = {}
    for name, value in environ.items():
        if name.endswith("_API_KEY"):
            value = value.strip()
            if not value or UNFILLED.match(value):
                continue
        kept[name] = value
    return kept


@dataclass(frozen=True)
class KeyNames:
    """Names of variables for keys. unfilled: those that a client passed on without a value."""

    present: tuple[str, ...]
    unfilled: tuple[str, ...]


def key_names(environ: Mapping[str, str] | None = None) -> KeyNames:
    environ = os.environ if environ is None else environ
    named = sorted(name for name in environ if name.endswith("_API_KEY"))
    kept = _without_empty_keys(environ)
    return KeyNames(
        tuple(name for name in named if name in kept),
        tuple(name for name in named if UNFILLED.match(environ[name].strip())),
    )


def installer_environment(
    *, cpu_torch: str | None, environ: Mapping[str, str] | None = None
) -> dict[str, str]:
    """The environment of pip or uv. cpu_torch: the index with torch for processors, where that is
    wanted; what the person set themselves stays.
    """
    environ = os.environ if environ is None else environ
    chosen = {"PIP_EXTRA_INDEX_URL": cpu_torch, "UV_TORCH_BACKEND": "cpu"} if cpu_torch else {}
    return {**chosen, **environ, "PYTHONUTF8": "1"}


_SECRET_NAME = re.compile(r"(KEY|TOKEN|SECRET|PASSWORD|CREDENTIALS)S?(_ID)?$", re.IGNORECASE)
_SHORTEST_SECRET = 8


def secret_values(environ: Mapping[str, str] | None = None) -> tuple[str, ...]:
    """Values of the environment's variables that are named like secrets, for masking them."""
    environ = os.environ if environ is None else environ
    return tuple(
        value
        for name, value in environ.items()
        if _SECRET_NAME.search(name) and len(value) >= _SHORTEST_SECRET
    )


def worker_environment(environ: Mapping[str, str] | None = None) -> dict[str, str]:
    """The environment of the worker: ours, so with the providers' keys, and what keeps libraries
    from the network and from standard output. What the person set themselves stays.
    """
    environ = os.environ if environ is None else environ
    return {
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",
        "HF_HUB_DISABLE_TELEMETRY": "1",
        "HF_HUB_DISABLE_PROGRESS_BARS": "1",
        "TOKENIZERS_PARALLELISM": "false",
        # Threads that spin while they wait slow every other process on few cores, and each other.
        "OMP_WAIT_POLICY": "PASSIVE",
        **_without_empty_keys(environ),
        "PYTHONUTF8": "1",
    }


def provider_keys(
    models: Iterable[str], environ: Mapping[str, str] | None = None
) -> tuple[str, ...]:
    """Names of the keys of these models' providers that the environment holds.

    By the custom that LiteLLM follows: `openai/gpt-5` reads OPENAI_API_KEY.
    """
    environ = os.environ if environ is None else environ
    providers = {model.partition("/")[0].upper() for model in models if "/" in model}
    # The claude command has a login of its own, and takes this key where there is one.
    names = {
        f"{'ANTHROPIC' if provider == 'CLAUDE-CODE' else provider}_API_KEY"
        for provider in providers
    }
    return tuple(sorted(name for name in names if name in _without_empty_keys(environ)))


# What LiteLLM reads for the providers whose variables are certain; one of them is enough.
_KEYS_OF = {
    "anthropic": ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"),
    "openai": ("OPENAI_API_KEY",),
    "gemini": ("GEMINI_API_KEY", "GOOGLE_API_KEY"),
    "mistral": ("MISTRAL_API_KEY",),
    "groq": ("GROQ_API_KEY",),
    "deepseek": ("DEEPSEEK_API_KEY",),
    "openrouter": ("OPENROUTER_API_KEY", "OR_API_KEY"),
    "xai": ("XAI_API_KEY",),
}


def missing_key(model: str, environ: Mapping[str, str] | None = None) -> str | None:
    """Name of the variable that this hosted model's key would be in, where it is in none; None
    where it is there, or where the model may need no key: of an unknown provider, or with a server
    of the person's own in the environment.
    """
    environ = os.environ if environ is None else environ
    provider = model.partition("/")[0] if "/" in model else ""
    accepted = _KEYS_OF.get(provider)
    if accepted is None:
        return None
    kept = _without_empty_keys(environ)
    servers = (f"{provider.upper()}_{end}" for end in ("API_BASE", "BASE_URL"))
    if any(kept.get(name, "").strip() for name in (*accepted, *servers)):
        return None
    return accepted[0]


def claude_command(environ: Mapping[str, str] | None = None) -> str:
    """The executable behind `claude-code/MODEL`."""
    environ = os.environ if environ is None else environ
    value = environ.get("STASH_MCP_CLAUDE", "").strip()
    return "claude" if not value or UNFILLED.match(value) else value


def command_environment(environ: Mapping[str, str] | None = None) -> dict[str, str]:
    """The environment that a model's command gets: ours, without keys that are empty."""
    return _without_empty_keys(os.environ if environ is None else environ)


def has_variables(names: Iterable[str], environ: Mapping[str, str] | None = None) -> bool:
    environ = os.environ if environ is None else environ
    kept = _without_empty_keys(environ)
    return all(name in kept for name in names)
