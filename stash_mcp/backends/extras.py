"""Whether an optional part of the installation is there, without loading it."""

import importlib.util

from stash_mcp.agents.surroundings import here
from stash_mcp.errors import MissingExtraError

_PROBES = {
    "local": ("torch", "transformers", "safetensors", "gepa", "litellm", "tenacity", "scipy")
}


def has_extra(extra: str) -> bool:
    return all(importlib.util.find_spec(library) is not None for library in _PROBES[extra])


def require_extra(extra: str, needed_for: str) -> None:
    """Raise MissingExtraError unless every library of `extra` can be found.

    needed_for: begins the message, such as "Training a reward model".
    """
    if not has_extra(extra):
        how = here().how_to_add(extra)
        fix = f"Run: {how}; or let doctor install it in the background."
        raise MissingExtraError(extra, needed_for, fix)
