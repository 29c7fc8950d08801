"""Where our data lives and where the person works, and the choices that the environment makes."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, cast, get_args

from platformdirs import user_data_path

from stash_mcp.errors import VariableError
from stash_mcp.settings.unfilled import UNFILLED

InstallMode = Literal["auto", "ask", "off"]
BackendName = Literal["local", "stash"]
"""Where the work is done: on this machine, or by the hosted service Stash."""


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
    claude_config_named: bool = field(default=False, compare=False)
    """CLAUDE_CONFIG_DIR names that folder."""
    install_mode: InstallMode = "auto"
    """What happens to a run's skill at its end unless the run says otherwise: auto, ask or off."""
    backend: BackendName = "local"
    """Where work is done of which neither an id nor the caller says where."""
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

    @property
    def http_token_path(self) -> Path:
        return self.home / "http-token"


def default_home() -> Path:
    """Where our data is unless STASH_MCP_HOME names another folder."""
    return user_data_path("stash-skills", appauthor=False)


def load_settings(
    environ: Mapping[str, str] | None = None, working_dir: Path | None = None
) -> Settings:
    """Settings from the environment; an unset variable takes the platform's usual folder."""
    environ = os.environ if environ is None else environ
    working_dir = _working_dir() if working_dir is None else working_dir
    home = _folder(environ, "STASH_MCP_HOME") or default_home()
    project_dir, project_from = _project_dir(environ, working_dir)
    return Settings(
        home=_absolute(home, working_dir),
        project_dir=project_dir,
        claude_config_dir=_absolute(
            _folder(environ, "CLAUDE_CONFIG_DIR") or Path.home() / ".claude", working_dir
        ),
        claude_config_named=_folder(environ, "CLAUDE_CONFIG_DIR") is not None,
        install_mode=_install_mode(environ),
        backend=_backend(environ),
        xdg_config_home=_absolute_if_named(environ, "XDG_CONFIG_HOME", working_dir),
        codex_home=_absolute_if_named(environ, "CODEX_HOME", working_dir),
        project_from=project_from,
    )


def load_usable_settings(
    environ: Mapping[str, str] | None = None, working_dir: Path | None = None
) -> tuple[Settings, tuple[VariableError, ...]]:
    """`load_settings` as if the variables that cannot be used were unset, and what is wrong with
    them: for telling that, not for work in a place that the person did not name.
    """
    usable = dict(os.environ if environ is None else environ)
    faults: list[VariableError] = []
    while True:
        try:
            return load_settings(usable, working_dir), tuple(faults)
        except VariableError as error:
            faults.append(error)
            del usable[error.name]


def refuse_with(faults: Sequence[VariableError]) -> None:
    """Raises the first one."""
    if faults:
        raise faults[0]


def _working_dir() -> Path:
    try:
        return Path.cwd()
    except OSError:
        # It was removed under us; what needs no project goes on.
        return Path.home()


def _folder(environ: Mapping[str, str], name: str) -> Path | None:
    value = environ.get(name, "").strip()
    if not value or UNFILLED.match(value):
        return None
    if "${" in value:
        raise VariableError(
            name,
            f"{name} is '{value}': a variable in it was not filled in.",
            "Correct it in the client's configuration, or leave it out.",
        )
    try:
        return Path(value).expanduser()
    except RuntimeError as error:
        raise VariableError(
            name, f"{name} is '{value}', and there is no such home folder.", "Write the path out."
        ) from error


def _install_mode(environ: Mapping[str, str]) -> InstallMode:
    value = environ.get("STASH_MCP_INSTALL", "").strip()
    if not value or UNFILLED.match(value):
        return "auto"
    if value not in get_args(InstallMode):
        raise VariableError(
            "STASH_MCP_INSTALL",
            f"STASH_MCP_INSTALL is '{value}'.",
            "Set it to auto, ask or off, or leave it out.",
        )
    return cast(InstallMode, value)


def _backend(environ: Mapping[str, str]) -> BackendName:
    value = environ.get("STASH_MCP_BACKEND", "").strip()
    if not value or UNFILLED.match(value):
        return "local"
    if value not in get_args(BackendName):
        raise VariableError(
            "STASH_MCP_BACKEND",
            f"STASH_MCP_BACKEND is '{value}'.",
            "Set it to local or stash, or leave it out.",
        )
    return cast(BackendName, value)


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
