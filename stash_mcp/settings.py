"""Environment and paths, resolved once. No other file reads the environment."""

import json
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, cast, get_args
from urllib.parse import urlsplit

from platformdirs import user_data_path

from stash_mcp.errors import InputError, VariableError

_UNEXPANDED = re.compile(r"^\$\{[^}]*\}$")


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
    # Clients pass an unset `${VAR}` of their configuration through literally.
    value = environ.get(name, "").strip()
    if not value or _UNEXPANDED.match(value):
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
    if not value or _UNEXPANDED.match(value):
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
    if not value or _UNEXPANDED.match(value):
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


def http_token(environ: Mapping[str, str] | None = None) -> str | None:
    """The bearer token of the HTTP server that the person set; None where they set none.

    Not a part of Settings, which may be shown.
    """
    environ = os.environ if environ is None else environ
    value = environ.get("STASH_MCP_TOKEN", "").strip()
    return None if not value or _UNEXPANDED.match(value) else value


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
        tuple(name for name in named if _UNEXPANDED.match(environ[name].strip())),
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


def claude_command(environ: Mapping[str, str] | None = None) -> str:
    """The executable behind `claude-code/MODEL`."""
    environ = os.environ if environ is None else environ
    value = environ.get("STASH_MCP_CLAUDE", "").strip()
    return "claude" if not value or _UNEXPANDED.match(value) else value


def command_environment(environ: Mapping[str, str] | None = None) -> dict[str, str]:
    """The environment that a model's command gets: ours, without keys that are empty."""
    return _without_empty_keys(os.environ if environ is None else environ)


def has_variables(names: Iterable[str], environ: Mapping[str, str] | None = None) -> bool:
    environ = os.environ if environ is None else environ
    kept = _without_empty_keys(environ)
    return all(name in kept for name in names)


DEFAULT_STASH_URL = "https://api.joinstash.ai"
_USABLE_KEY = re.compile(r"^[\x21-\x7e]+$")
_CONFIG_BYTES = 65_536


@dataclass(frozen=True)
class StashAccess:
    """Where Stash is, as it was given and unchecked, and the key for it.

    api_key: None where there is none that may go to this URL; `key_from` then says why.
    allow_http: whether the key may travel in the clear to another machine.
    """

    base_url: str
    api_key: str | None = field(repr=False)
    url_from: str
    key_from: str
    allow_http: bool = False


def stash_access(
    environ: Mapping[str, str] | None = None, user_home: Path | None = None
) -> StashAccess:
    """Stash's URL and key: the environment, else what the plugin was configured with, else
    `~/.stash/config.json`, which is only read.

    The file's key goes to the file's URL alone. InputError for a key that no header can carry, and
    for a file that is needed and cannot be read.
    """
    environ = os.environ if environ is None else environ
    url, url_from = _first_set(environ, "STASH_URL", "CLAUDE_PLUGIN_OPTION_STASH_URL")
    key, key_from = _first_set(environ, "STASH_API_KEY", "CLAUDE_PLUGIN_OPTION_STASH_API_KEY")
    if not url or not key:
        path = (user_home or Path.home()) / ".stash" / "config.json"
        file_url, file_key = _stash_config(path)
        file_url = file_url or DEFAULT_STASH_URL
        if not key:
            key, key_from = _files_key(file_key, file_url, url, path)
        if not url:
            url, url_from = file_url, str(path) if path.exists() else "the default"
    allow_http = _first_set(environ, "STASH_ALLOW_HTTP")[0].lower() in ("1", "true", "yes")
    return StashAccess(url, _usable(key, key_from), url_from, key_from, allow_http)


def _first_set(environ: Mapping[str, str], *names: str) -> tuple[str, str]:
    for name in names:
        value = environ.get(name, "").strip()
        if value and not _UNEXPANDED.match(value):
            return value, name
    return "", ""


def _files_key(file_key: str, file_url: str, url: str, path: Path) -> tuple[str, str]:
    if not file_key:
        return "", "no key is set"
    if url and _origin(url) != _origin(file_url):
        return "", f"the key in {path} belongs to another address than STASH_URL"
    return file_key, str(path)


def _origin(url: str) -> tuple[str, str]:
    try:
        parts = urlsplit(url)
    except ValueError:
        return "", url
    return parts.scheme.lower(), parts.netloc.lower()


def _usable(key: str, key_from: str) -> str | None:
    if key and not _USABLE_KEY.match(key):
        raise InputError(
            f"The Stash key from {key_from} has blanks or characters that no key has.",
            "Copy it again, without quotes and line ends.",
        )
    return key or None


def _stash_config(path: Path) -> tuple[str, str]:
    """URL and key of the file that the `stashai` command keeps; "" for what is not there."""
    try:
        with path.open("rb") as file:
            values = json.loads(file.read(_CONFIG_BYTES))
    except (FileNotFoundError, NotADirectoryError):
        return "", ""
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(
            f"{path} cannot be read as JSON ({type(error).__name__}).",
            "Correct it, or set STASH_URL and STASH_API_KEY instead.",
        ) from None
    texts = values if isinstance(values, dict) else {}
    url, key = (texts.get(name) for name in ("base_url", "api_key"))
    return _text(url), _text(key)


def _text(value: object) -> str:
    return value.strip() if isinstance(value, str) else ""
