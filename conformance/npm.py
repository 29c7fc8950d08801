"""The suite and the Inspector, pinned, in a folder of this project; and a Node that runs them."""

import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

SUITE = "@modelcontextprotocol/conformance"
INSPECTOR = "@modelcontextprotocol/inspector"
PACKAGES = (f"{SUITE}@0.2.0-alpha.12", f"{INSPECTOR}@2.12.0")
# A package that brings Node itself, for where the installed one is older than the Inspector wants.
NODE = "node@22.23.3"
OLDEST_NODE = (22, 19)
_MODULES = "node_modules"
_INSTALL_SECONDS = 900


class NpmError(Exception):
    """What is missing, or what npm said."""


@dataclass(frozen=True)
class Tools:
    """Commands, to be followed by their arguments."""

    suite: Sequence[str]
    inspector: Sequence[str]


def install(folder: Path) -> Tools:
    """What is there already is not fetched again. Raises NpmError."""
    npm = shutil.which("npm")
    if npm is None:
        raise NpmError("npm is needed, which comes with Node.js.")
    node = _node(npm, folder / "node")
    suite = folder / "suite"
    _fetch(npm, suite, PACKAGES, "--ignore-scripts")
    modules = suite / _MODULES
    return Tools(
        suite=(node, str(modules / SUITE / "dist" / "index.js")),
        inspector=(node, str(modules / INSPECTOR / "clients" / "launcher" / "build" / "index.js")),
    )


def _node(npm: str, folder: Path) -> str:
    installed = shutil.which("node")
    if installed is not None and _version(installed) >= OLDEST_NODE:
        return installed
    _fetch(npm, folder, [NODE])
    found = shutil.which("node", path=folder / _MODULES / "node" / "bin")
    if found is None:
        wanted = ".".join(map(str, OLDEST_NODE))
        raise NpmError(f"npm did not install {NODE}. Install Node.js {wanted} or later.")
    return found


def _version(node: str) -> tuple[int, ...]:
    """`v22.19.0` as (22, 19)."""
    said = subprocess.run([node, "--version"], capture_output=True, text=True, check=True).stdout
    return tuple(int(part) for part in said.strip().removeprefix("v").split(".")[:2])


def _fetch(npm: str, folder: Path, packages: Sequence[str], *options: str) -> None:
    done = folder / "installed.txt"
    wanted = "\n".join(packages)
    if done.is_file() and done.read_text(encoding="utf-8") == wanted:
        return
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    command = [npm, "install", "--prefix", str(folder), "--no-save", "--no-package-lock"]
    command += ["--no-audit", "--no-fund", *options, *packages]
    ended = subprocess.run(
        command,
        capture_output=True,
        encoding="utf-8",
        errors="replace",
        timeout=_INSTALL_SECONDS,
        check=False,
    )
    if ended.returncode != 0:
        raise NpmError(f"npm could not install {', '.join(packages)}:\n{ended.stderr}")
    done.write_text(wanted, encoding="utf-8")
