"""Environment and paths, resolved once. No other file reads the environment."""

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, cast, get_args

from platformdirs import user_data_path

from stash_mcp.errors import InputError

_UNEXPANDED = re.compile(r"^\$\{[^}]*\}$")


InstallMode = Literal["auto", "ask", "off"]


@dataclass(frozen=True)
class Settings:
    """Where our data lives and where the person works.

    home: absolute folder of our data, private to the user; made when first written to.
    project_dir: absolute folder of the person's project, for installing at scope `project`.
    claude_config_dir: absolute folder of Claude Code's user settings.
    user_home: the person's own folder, where most agents keep theirs.
    xdg_config_home, codex_home: as their variables name them; None where they are unset.
    project_from: what `project_dir` was taken from, in words.
    """

    home: Path
    project_dir: Path
    claude_config_dir: Path
    install_mode: InstallMode = "auto"
    """What happens to a run's skill at its end unless the run says otherwise: auto, ask or off."""
    user_home: Path = field(default_factory=Path.home)
    xdg_config_home: Path | None = None
    codex_home: Path | None = None
    project_from: str = field(default="it was given", compare=False)

    @property
    def config_home(self) -> Path:
        """Where agents that follow XDG keep their settings."""
        return self.xdg_config_home or self.user_home / ".config"

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
    working_dir = _working_dir() if working_dir is None else working_dir
    home = _folder(environ, "STASH_MCP_HOME") or user_data_path("stash-skills", appauthor=False)
    project_dir, project_from = _project_dir(environ, working_dir)
    return Settings(
        home=_absolute(home, working_dir),
        project_dir=project_dir,
        claude_config_dir=_absolute(
            _folder(environ, "CLAUDE_CONFIG_DIR") or Path.home() / ".claude", working_dir
        ),
        install_mode=_install_mode(environ),
        xdg_config_home=_absolute_if_named(environ, "XDG_CONFIG_HOME", working_dir),
        codex_home=_absolute_if_named(environ, "CODEX_HOME", working_dir),
        project_from=project_from,
    )


def _working_dir() -> Path:
    try:
        return Path.cwd()
    except OSError:
        # It was removed under us; what needs no project goes on.
        return Path.home()


def _folder(environ: Mapping[str, str], name: str) -> Path | None:
    # Clients pass an unset `${VAR}` of their configuration through literally.
    value = environ.get(name, "").strip()
    if not value or _UNEXPANDED.match(value):
        return None
    if "${" in value:
        raise InputError(
            f"{name} is '{value}': a variable in it was not filled in.",
            "Correct it in the client's configuration, or leave it out.",
        )
    try:
        return Path(value).expanduser()
    except RuntimeError as error:
        raise InputError(
            f"{name} is '{value}', and there is no such home folder.", "Write the path out."
        ) from error


def _install_mode(environ: Mapping[str, str]) -> InstallMode:
    value = environ.get("STASH_MCP_INSTALL", "").strip()
    if not value or _UNEXPANDED.match(value):
        return "auto"
    if value not in get_args(InstallMode):
        raise InputError(
            f"STASH_MCP_INSTALL is '{value}'.", "Set it to auto, ask or off, or leave it out."
        )
    return cast(InstallMode, value)


def _absolute(path: Path, base: Path) -> Path:
    return Path(os.path.normpath(base / path))


def _absolute_if_named(environ: Mapping[str, str], name: str, base: Path) -> Path | None:
    folder = _folder(environ, name)
    return None if folder is None else _absolute(folder, base)


def _project_dir(environ: Mapping[str, str], working_dir: Path) -> tuple[Path, str]:
    """CLAUDE_PROJECT_DIR, else the root of the repository around the working folder, else it; and
    which of them it is.
    """
    named = _folder(environ, "CLAUDE_PROJECT_DIR")
    if named is not None:
        return _absolute(named, working_dir), "CLAUDE_PROJECT_DIR names it"
    for folder in (working_dir, *working_dir.parents):
        if (folder / ".git").exists():
            return folder, "it is the root of the repository around the working folder"
    return working_dir, "it is the working folder, which lies in no repository"


def _without_empty_keys(environ: Mapping[str, str]) -> dict[str, str]:
    """A client passes a key that is not set as "" or as `${NAME}`; libraries would send either."""
    kept = {}
    for name, value in environ.items():
        if name.endswith("_API_KEY"):
            value = value.strip()
            if not value or _UNEXPANDED.match(value):
                continue
        kept[name] = value
    return kept


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
    names = {f"{model.partition('/')[0].upper()}_API_KEY" for model in models if "/" in model}
    return tuple(sorted(name for name in names if name in _without_empty_keys(environ)))


def has_variables(names: Iterable[str], environ: Mapping[str, str] | None = None) -> bool:
    environ = os.environ if environ is None else environ
    kept = _without_empty_keys(environ)
    return all(name in kept for name in names)
