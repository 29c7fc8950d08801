"""How this program was installed, and so how an agent starts it and how a part is added to it."""

import importlib.metadata
import json
import re
import shlex
import shutil
import sys
import sysconfig
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

DISTRIBUTION = "stash-skills"
CPU_TORCH = "https://download.pytorch.org/whl/cpu"
_GPU_DEVICES = ("/dev/nvidia0", "/dev/nvidiactl", "/dev/dxg", "/dev/kfd")
_SUBCOMMAND = "serve"
# The buckets of uv's cache in which `uvx` makes an environment that may be gone tomorrow.
_UVX_BUCKET = re.compile(r"^(archive|builds|environments)-v\d+$")

Kind = Literal["venv", "pipx", "uv-tool", "uvx", "system"]
Which = Callable[[str], str | None]

TITLES: dict[Kind, str] = {
    "venv": "a virtual environment",
    "pipx": "pipx",
    "uv-tool": "uv tool",
    "uvx": "uvx, for this once",
    "system": "the system's Python",
}


@dataclass(frozen=True)
class Surroundings:
    """executable, prefix, scripts: of the running Python; absolute. managed: the operating system
    keeps others from installing into it. source: what to install again, where that is not the
    package index: `git+https://...` or `file:///...`.
    """

    kind: Kind
    executable: Path
    prefix: Path
    scripts: Path
    managed: bool = False
    source: str | None = None

    @property
    def can_be_added_to(self) -> bool:
        return self.kind != "uvx" and not self.managed

    def requirement(self, extra: str = "") -> str:
        named = DISTRIBUTION + (f"[{extra}]" if extra else "")
        return named if self.source is None else f"{named} @ {self.source}"

    def serve_command(self, *, portable: bool = False, which: Which = shutil.which) -> list[str]:
        """The command that starts the server, whatever an agent's PATH is.

        portable: for a file that others share, where it matters nothing.
        """
        if self.kind == "uvx":
            # Programs that were not started from a shell often lack the folder that uvx is in.
            uvx = "uvx" if portable else which("uvx") or "uvx"
            chosen = ["--from", self.requirement()] if self.source else []
            return [uvx, *chosen, DISTRIBUTION, _SUBCOMMAND]
        for name in (DISTRIBUTION, f"{DISTRIBUTION}.exe"):
            script = self.scripts / name
            if script.is_file():
                return [str(script), _SUBCOMMAND]
        return [str(self.executable), "-m", "stash_mcp", _SUBCOMMAND]

    def how_to_add(self, extra: str, *, index: str | None = None) -> str:
        """One line for a shell that adds the optional part. index: where torch comes from, if not
        from the usual index.
        """
        wanted = _quoted(self.requirement(extra))
        if self.kind == "pipx":
            chosen = f" --pip-args={_quoted(f'--extra-index-url {index}')}" if index else ""
            return f"pipx install --force{chosen} {wanted}"
        if self.kind in ("uv-tool", "uvx"):
            chosen = " --torch-backend cpu" if index else ""
            return f"uv tool install --force{chosen} {wanted}"
        chosen = f" --extra-index-url {index}" if index else ""
        if self.managed:
            return (
                f"python3 -m venv ~/stash-skills && ~/stash-skills/bin/pip install{chosen} {wanted}"
            )
        # Of what is installed already, pip takes the extra's requirements from there.
        named = _quoted(f"{DISTRIBUTION}[{extra}]")
        return f"{_quoted(str(self.executable))} -m pip install{chosen} {named}"


def here() -> Surroundings:
    """Those of the running process."""
    prefix = Path(sys.prefix)
    return Surroundings(
        kind=_kind(prefix, sys.prefix != sys.base_prefix),
        # Not resolved: a virtual environment's Python is often a link to another.
        executable=Path(sys.executable),
        prefix=prefix,
        scripts=Path(sysconfig.get_path("scripts")),
        managed=sys.prefix == sys.base_prefix and _externally_managed(),
        source=_source(_direct_url()),
    )


def _kind(prefix: Path, is_environment: bool) -> Kind:
    if (prefix / "pipx_metadata.json").exists():
        return "pipx"
    if (prefix / "uv-receipt.toml").exists():
        return "uv-tool"
    if any(_UVX_BUCKET.match(part) for part in prefix.parts):
        return "uvx"
    return "venv" if is_environment else "system"


def _externally_managed() -> bool:
    return (Path(sysconfig.get_path("stdlib")) / "EXTERNALLY-MANAGED").exists()


def _direct_url() -> str | None:
    try:
        return importlib.metadata.distribution(DISTRIBUTION).read_text("direct_url.json")
    except importlib.metadata.PackageNotFoundError:
        return None


def _source(direct_url: str | None) -> str | None:
    """From the record of where a package came from (PEP 610); None for the package index."""
    if direct_url is None:
        return None
    record = json.loads(direct_url)
    vcs = record.get("vcs_info")
    if vcs is None:
        return str(record["url"])
    revision = vcs.get("requested_revision")
    return f"{vcs['vcs']}+{record['url']}" + (f"@{revision}" if revision else "")


def torch_index() -> str | None:
    """Where torch comes from without gigabytes of CUDA; None where the usual index is right."""
    if sys.platform != "linux" or any(Path(device).exists() for device in _GPU_DEVICES):
        return None
    return CPU_TORCH


def shell_line(words: Sequence[str]) -> str:
    return " ".join(_quoted(word) for word in words)


def _quoted(text: str) -> str:
    if sys.platform == "win32":
        return f'"{text}"' if re.search(r"[\s\[\]<>&|]", text) else text
    return shlex.quote(text)
