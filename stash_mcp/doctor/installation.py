"""Python, the versions of what matters, and the optional parts."""

import importlib.metadata
import importlib.util
import platform
import re
import sys

from stash_mcp.agents.surroundings import DISTRIBUTION, TITLES, Surroundings
from stash_mcp.backends.extras import has_extra, how_to_add
from stash_mcp.doctor.installing import InstallState
from stash_mcp.doctor.report import Check, ok, warning

_LEAST_PYTHON = (3, 11)
_SHOWN = (DISTRIBUTION, "mcp", "gepa", "litellm", "torch", "transformers")
_EXTRA_MARKER = re.compile(r"""\s*(?:and\s+)?extra\s*==\s*["'](?P<extra>[^"']+)["']\s*""")


def python(surroundings: Surroundings) -> Check:
    title = TITLES[surroundings.kind]
    said = f"{platform.python_version()} in {title}: {surroundings.executable}"
    if sys.version_info < _LEAST_PYTHON:
        return warning("python", said, "Install it again with Python 3.11 or later.")
    return ok("python", said)


def versions() -> Check:
    found = [f"{name} {found_version}" for name in _SHOWN if (found_version := version(name))]
    return ok("versions", ", ".join(found))


def local_part(surroundings: Surroundings, installing: InstallState | None) -> Check:
    """Whether the libraries of the local pipeline can be found, and how to add them."""
    name = "local pipeline"
    if installing is not None and installing.is_running:
        return warning(name, installing.said, "Ask again in a while.")
    if has_extra("local"):
        return ok(name, "Everything that training and runs need is installed.")
    said = "Not installed: trainings and runs on this machine need it (about 1 GB)."
    if installing is not None and not installing.succeeded:
        said = f"Not installed. {installing.said}"
    return warning(name, said, how_to_add("local", surroundings))


def demo_part(surroundings: Surroundings) -> Check:
    if importlib.util.find_spec("xllamacpp") is not None:
        return ok("demo", "Installed.")
    return ok(
        "demo",
        "Not installed; only the demonstration (stash-skills demo) needs it.",
        how_to_add("demo", surroundings),
    )


def requirements_of(extra: str) -> tuple[str, ...]:
    """What the optional part asks for, in the words of this installation's own metadata."""
    declared = importlib.metadata.requires(DISTRIBUTION) or []
    return tuple(found for row in declared if (found := _required_by(row, extra)) is not None)


def _required_by(requirement: str, extra: str) -> str | None:
    """The requirement without the condition on the extra; None where it is not that extra's."""
    named, _, marker = requirement.partition(";")
    found = _EXTRA_MARKER.search(marker)
    if found is None or found.group("extra") != extra:
        return None
    rest = (marker[: found.start()] + marker[found.end() :]).strip()
    rest = rest.removeprefix("and ").removesuffix(" and").strip()
    return f"{named.strip()} ; {rest}" if rest else named.strip()


def version(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None
