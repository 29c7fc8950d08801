"""Environment and paths, resolved once. No other file reads the environment."""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from platformdirs import user_data_path

_UNEXPANDED = re.compile(r"^\$\{[^}]*\}$")


@dataclass(frozen=True)
class Settings:
    """Where our data lives and where the person works.

    home: absolute folder of our data, private to the user; made when first written to.
    project_dir: absolute folder of the person's project, for installing at scope `project`.
    claude_config_dir: absolute folder of Claude Code's user settings.
    """

    home: Path
    project_dir: Path
    claude_config_dir: Path

    @property
    def library_path(self) -> Path:
        return self.home / "library.db"

    @property
    def calls_path(self) -> Path:
        return self.home / "calls.db"

    @property
    def runs_dir(self) -> Path:
        return self.home / "runs"

    @property
    def reward_models_dir(self) -> Path:
        return self.home / "reward-models"

    @property
    def backups_dir(self) -> Path:
        return self.home / "backups"

    @property
    def worker_lock_path(self) -> Path:
        return self.home / "worker.lock"


def load_settings(
    environ: Mapping[str, str] | None = None, working_dir: Path | None = None
) -> Settings:
    """Settings from the environment; an unset variable takes the platform's usual folder."""
    environ = os.environ if environ is None else environ
    working_dir = Path.cwd() if working_dir is None else working_dir
    home = _folder(environ, "STASH_MCP_HOME") or user_data_path("stash-skills", appauthor=False)
    return Settings(
        home=_absolute(home, working_dir),
        project_dir=_project_dir(environ, working_dir),
        claude_config_dir=_absolute(
            _folder(environ, "CLAUDE_CONFIG_DIR") or Path.home() / ".claude", working_dir
        ),
    )


def _folder(environ: Mapping[str, str], name: str) -> Path | None:
    # Clients pass an unset `${VAR}` of their configuration through literally.
    value = environ.get(name, "").strip()
    if not value or _UNEXPANDED.match(value):
        return None
    return Path(value).expanduser()


def _absolute(path: Path, base: Path) -> Path:
    return Path(os.path.normpath(base / path))


def _project_dir(environ: Mapping[str, str], working_dir: Path) -> Path:
    """CLAUDE_PROJECT_DIR, else the root of the repository around the working folder, else it."""
    named = _folder(environ, "CLAUDE_PROJECT_DIR")
    if named is not None:
        return _absolute(named, working_dir)
    for folder in (working_dir, *working_dir.parents):
        if (folder / ".git").exists():
            return folder
    return working_dir


_SECRET_NAME = re.compile(r"(KEY|TOKEN|SECRET|PASSWORD|CREDENTIALS)S?$", re.IGNORECASE)
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
        **environ,
        "PYTHONUTF8": "1",
    }
