"""Whether an optional part of the installation is there, without loading it."""

import importlib.util

from stash_mcp.agents.surroundings import Surroundings, here, torch_index
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
        raise missing(extra, needed_for)


def missing(extra: str, needed_for: str) -> MissingExtraError:
    return MissingExtraError(extra, needed_for, how_to_add(extra, here()))


def how_to_add(extra: str, surroundings: Surroundings) -> str:
    """The line for a shell, and for the local pipeline the way that needs none."""
    line = surroundings.how_to_add(extra, index=torch_index() if extra == "local" else None)
    if extra != "local" or not surroundings.can_be_added_to:
        return f"Run: {line}"
    also = "stash-skills doctor --install local"
    return f'Run: {line}  (or in the background: {also}; the tool doctor with install="local").'
